# Every state of a simulation is kept in a list of the function.
# expect: DPM201 at state
import dpnp


def run(steps):
    history = []
    x = dpnp.zeros(100_000)
    for _ in range(steps):
        x += 1
        history.append(x.copy())  # @state
    return len(history)


print(run(60))
