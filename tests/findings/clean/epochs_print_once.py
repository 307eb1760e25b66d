# Progress is printed once per epoch.
import dpnp

weights = dpnp.ones((200, 200), dtype=dpnp.float32)
decayed = dpnp.empty_like(weights)
for epoch in range(25):
    for _ in range(8):
        dpnp.multiply(weights, 0.99, out=decayed)
        dpnp.add(decayed, 0.001, out=weights)
    print(f"epoch {epoch}: mean weight {float(weights.mean()):.4f}")
