# Augmented assignment works in place.
import dpnp

position = dpnp.linspace(0, 1, 50_000)
velocity = dpnp.ones(50_000)
drift = dpnp.full(50_000, 1e-3)
for _ in range(200):
    velocity *= 0.999
    velocity += drift
    position += velocity
print(float(position.mean()))
