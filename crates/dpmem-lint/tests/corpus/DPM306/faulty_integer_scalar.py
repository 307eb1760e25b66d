import dpnp
import numpy

counts = dpnp.ones(10, dtype="i4")
x = dpnp.ones(10, dtype="f4")
offset = numpy.int64(3)
a = counts + offset  #! DPM306 counts + offset
b = x + offset  #! DPM306 x + offset
