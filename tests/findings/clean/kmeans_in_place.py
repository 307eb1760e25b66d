# Lloyd's algorithm with buffers; the centres move on the device.
import dpnp

points = dpnp.random.uniform(size=(4_000, 2))
centres = points[:5].copy()
distance = dpnp.empty((4_000, 5))
difference = dpnp.empty((4_000, 5, 2))
label = dpnp.empty(4_000, dtype=dpnp.int64)
member = dpnp.empty((4_000, 5), dtype=bool)
numbers = dpnp.arange(5)
for _ in range(10):
    dpnp.subtract(points[:, None, :], centres[None, :, :], out=difference)
    dpnp.multiply(difference, difference, out=difference)
    dpnp.sum(difference, axis=2, out=distance)
    dpnp.argmin(distance, axis=1, out=label)
    dpnp.equal(label[:, None], numbers[None, :], out=member)
    weights = member.astype(dpnp.float64)
    centres[...] = (weights.T @ points) / weights.sum(axis=0)[:, None]
print(dpnp.asnumpy(centres))
