# A film: each frame goes to the device, is filtered there and comes back into one host array.
import dpnp
import numpy

film = numpy.random.default_rng(9).random((24, 120, 160), dtype=numpy.float32)
result = numpy.empty_like(film)
smooth = dpnp.empty((120, 160), dtype=dpnp.float32)
for i, frame in enumerate(film):
    image = dpnp.asarray(frame)
    smooth[...] = image
    smooth[1:] += image[:-1]
    smooth[:-1] += image[1:]
    smooth /= 3
    result[i] = dpnp.asnumpy(smooth)
print(result.mean())
