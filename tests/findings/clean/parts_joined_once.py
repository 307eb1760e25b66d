# Parts are collected in a list and concatenated once; then the work goes on with the whole.
import dpnp

parts = []
for i in range(24):
    parts.append(dpnp.arange(i * 5_000, (i + 1) * 5_000, dtype=dpnp.float64))
whole = dpnp.concatenate(parts)
del parts
for _ in range(50):
    dpnp.sqrt(whole, out=whole)
print(float(whole[-1]))
