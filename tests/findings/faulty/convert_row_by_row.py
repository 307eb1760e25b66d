# A host table travels to the device in 400 small pieces.
# expect: DPM401 at send
import dpnp
import numpy


def upload(host):
    device = dpnp.empty(host.shape, dtype=host.dtype)
    for i, row in enumerate(host):
        device[i] = dpnp.asarray(row)  # @send
    return device


print(float(upload(numpy.random.default_rng(8).random((400, 12))).sum()))
