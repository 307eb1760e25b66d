# Copies in a loop that need a conversion: other dtypes, negative and broadcast strides, device to device.
# waits: no
import dpnp
import numpy

host = numpy.arange(8_000, dtype="i4")
total = 0.0
for step in (1, 2, -1, -3, 7):
    for dtype in ("f4", "f8", "i8"):
        block = dpnp.asarray(host[::step], dtype=dtype)
        total += float(block[0] + block[-1])
print(total)
wide = dpnp.asarray(numpy.broadcast_to(host[:50], (40, 50)))
target = dpnp.zeros((40, 100), dtype="f4")
target[:, ::2] = wide
target[:, 1::2] = dpnp.asarray(host[:50])
print(float(target.sum()))
copies = [target.copy(), dpnp.copy(target, order="F"), target.astype("f8"), dpnp.ascontiguousarray(target.T)]
print([c.shape for c in copies], [dpnp.asnumpy(c[:2, :2]).sum() for c in copies])
