# Double precision was asked for, by name.
import dpnp

x = dpnp.linspace(0, 1, 50_000, dtype=dpnp.float32)
exact = x.astype(dpnp.float64)
total = dpnp.sum(x, dtype=dpnp.float64)
product = exact * dpnp.full(50_000, 3.0, dtype=dpnp.float64)
print(float(total), float(product[-1]))
