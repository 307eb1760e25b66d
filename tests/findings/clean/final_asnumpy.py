# The picture is fetched when it is finished.
import dpnp

height, width = 240, 320
x = dpnp.linspace(-2, 1, width, dtype=dpnp.float64)
y = dpnp.linspace(-1.2, 1.2, height, dtype=dpnp.float64)
c = dpnp.empty((height, width), dtype=dpnp.complex128)
c[...] = x[None, :] + 1j * y[:, None]
z = dpnp.zeros_like(c)
size = dpnp.empty((height, width))
inside = dpnp.empty((height, width), dtype=bool)
count = dpnp.zeros((height, width), dtype=dpnp.int32)
for _ in range(25):
    dpnp.multiply(z, z, out=z)
    dpnp.add(z, c, out=z)
    dpnp.abs(z, out=size)
    dpnp.less(size, 2, out=inside)
    count += inside
    dpnp.copyto(z, 2, where=dpnp.logical_not(inside, out=inside))
image = count.asnumpy()
print(image.max(), image.shape)
