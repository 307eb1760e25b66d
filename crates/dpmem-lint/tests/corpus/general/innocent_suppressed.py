import dpnp
import numpy

x = dpnp.ones(100, dtype="f4")
for _ in range(100):
    y = x * 2  # noqa: DPM301
    z = x * numpy.float64(2)  # noqa
    w = numpy.sin(x)  # NOQA: E501, DPM4
