import dpnp
import numpy

weights = numpy.ones(1000)
x = dpnp.zeros(1000)
on_device = None
for i in range(100):
    if on_device is None:
        on_device = dpnp.asarray(weights)
    x += on_device
    if i % 50 == 0:
        print(dpnp.asnumpy(x)[0])
