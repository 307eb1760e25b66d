# All pairs at once: two cubes for a square.
# expect: DPM302 at cube
import dpnp


def distances(points):
    return dpnp.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1))  # @cube


points = dpnp.random.uniform(size=(700, 8))
d = distances(points)
print(d.shape, float(d.max()))
