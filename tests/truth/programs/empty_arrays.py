# Arrays without elements, 0-d arrays, and what operations on them allocate.
# waits: yes
import dpnp
import numpy
from _settle import settle

nothing = dpnp.empty(0)
settle(nothing)
more = nothing + nothing
settle(more)
joined = dpnp.concatenate([nothing, more, dpnp.ones(3)])
settle(joined)
print(nothing.shape, more.shape, joined.shape, nothing.nbytes)
flat = dpnp.zeros((0, 5))
settle(flat)
print(flat.sum(axis=0).shape, dpnp.asnumpy(flat).shape, dpnp.asarray(numpy.empty((3, 0))).shape)
settle(flat)
point = dpnp.asarray(4.5)
settle(point)
print(point.shape, float(point), joined[3:].shape, joined[joined > 9].shape)
settle(point, joined)
many = [dpnp.asarray(float(i)) for i in range(40)]
settle(*many)
del many[::2]
