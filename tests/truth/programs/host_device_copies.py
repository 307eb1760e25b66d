# NumPy to device and back: contiguous, strided, casting, into existing arrays, scalars, and by way of a file.
# waits: yes
import dpnp
import numpy
from _settle import settle

host = numpy.arange(12_000, dtype="f8").reshape(100, 120)
straight = dpnp.asarray(host)
settle(straight)
strided = dpnp.asarray(host[::3, ::5])
settle(strided)
narrow = dpnp.asarray(host, dtype="f4")
settle(narrow)
turned = dpnp.asarray(host.T[:10])
settle(turned)
straight[4] = numpy.ones(120)
settle(straight)
straight[:, 1] = 5
settle(straight)
back = dpnp.asnumpy(straight)
part = dpnp.asnumpy(strided[::2, 1])
settle(straight, strided)
print(back.sum(), part.sum(), float(narrow[3, 3]), straight[0, 0].item())
settle(straight, narrow)
numpy.save("round_trip.npy", back)
loaded = dpnp.asarray(numpy.load("round_trip.npy"))
settle(loaded)
print(bool((loaded == straight).all()), dpnp.asarray([1, 2, 3]).shape)
settle(loaded)
del back
