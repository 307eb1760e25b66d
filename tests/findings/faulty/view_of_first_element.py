# A loss is indexed out of the array of all losses and kept as a 0-d view.
# expect: DPM202 at losses
import dpnp


def evaluate(seed):
    losses = dpnp.arange(seed, seed + 1_000_000, dtype=dpnp.float32)  # @losses
    return {"first": losses[0], "last": losses[-1]}


summary = evaluate(5)
for name in summary:
    print(name, float(summary[name]))
