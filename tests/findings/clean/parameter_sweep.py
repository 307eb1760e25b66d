# The same small study for twelve parameters; each returns one row of a table.
import dpnp


def study(damping):
    x = dpnp.linspace(0, 10, 30_000)
    y = dpnp.exp(-damping * x) * dpnp.cos(x)
    return {"damping": damping, "mean": float(y.mean()), "least": float(y.min())}


for row in [study(0.1 * i) for i in range(12)]:
    print(row)
