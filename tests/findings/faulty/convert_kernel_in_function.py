# A filter given as a Python list becomes an array in each call.
# expect: DPM401 at kernel
import dpnp

KERNEL = [0.01, 0.02, 0.05, 0.1, 0.2, 0.24, 0.2, 0.1, 0.05, 0.02, 0.01]


def blur(line, out):
    kernel = dpnp.array(KERNEL)  # @kernel
    dpnp.multiply(line, kernel[5], out=out)
    return out


line = dpnp.ones(2_000)
result = dpnp.empty_like(line)
for _ in range(40):
    blur(line, result)
print(float(result[0]))
