# Histograms, covariance, correlation, interpolation and a k-means in a few lines.
# waits: no
import dpnp

x = dpnp.sin(dpnp.arange(3000, dtype="f8"))
counts, edges = dpnp.histogram(x, bins=20)
print(int(counts.sum()), edges.shape, dpnp.bincount(dpnp.asarray([1, 1, 3])).shape)
table = dpnp.stack([x, x * x, dpnp.cos(x)])
print(dpnp.cov(table).shape, round(float(dpnp.corrcoef(table)[0, 0]), 4))
print(round(float(dpnp.interp(dpnp.asarray([0.5]), dpnp.arange(3.0), dpnp.asarray([0.0, 10.0, 20.0]))[0]), 3))
points = dpnp.reshape(x, (-1, 2))
centres = points[:4].copy()
for _ in range(4):
    distance = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
    nearest = dpnp.argmin(distance, axis=1)
    for k in range(4):
        mine = points[nearest == k]
        if mine.shape[0]:
            centres[k] = mine.mean(axis=0)
print(centres.shape, dpnp.convolve(x[:100], dpnp.ones(5)).shape)
