# One expression over a large array.
# expect: DPM302 at line
import dpnp

x = dpnp.linspace(0, 1, 4_000_000, dtype=dpnp.float32)
y = 3 * x**3 - 2 * x**2 + 5 * x - 1  # @line
print(float(y[-1]))
