# bool(any(...)) decides on every step.
# expect: DPM403 at stop
import dpnp

x = dpnp.linspace(0, 1, 30_000, dtype=dpnp.float32)
over = dpnp.empty(30_000, dtype=bool)
for step in range(500):
    x += 0.01
    dpnp.greater(x, 1.8, out=over)
    if dpnp.any(over):  # @stop
        break
print(step)
