# A 0-d float64 array is as strong as a long one.
# expect: DPM306 at scale
import dpnp


def normalise(x, factor):
    return x / factor  # @scale


factor = dpnp.asarray(255.0, dtype=dpnp.float64)
pixels = dpnp.linspace(0, 255, 300_000, dtype=dpnp.float32)
result = normalise(pixels, factor)
print(float(result.max()))
