# NumPy in, NumPy out, the device in between.
import dpnp
import numpy

host = numpy.linspace(-3, 3, 200_000, dtype=numpy.float32)
x = dpnp.asarray(host)
y = dpnp.empty_like(x)
dpnp.multiply(x, x, out=y)
dpnp.negative(y, out=y)
dpnp.exp(y, out=y)
result = dpnp.asnumpy(y)
print(result.sum(), numpy.argmax(result))
