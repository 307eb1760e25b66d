# The loop condition looks at the device after each small step.
# expect: DPM403 at check
import dpnp


def relax(x, y, tolerance):
    steps = 0
    change = dpnp.full((), 1.0)
    while change > tolerance:  # @check
        dpnp.multiply(x, 0.9, out=y)
        dpnp.subtract(x, y, out=x)
        dpnp.max(x, out=change)
        x, y = y, x
        steps += 1
    return steps


print(relax(dpnp.ones(20_000), dpnp.empty(20_000), 1e-5))
