# Central moments of a big sample: every operator makes an array as large as the sample.
# expect: DPM302 at skew
import dpnp


def skewness(x):
    return float((((x - x.mean()) / x.std()) ** 3).mean())  # @skew


print(skewness(dpnp.random.normal(size=3_000_000)))
