# The mean that NumPy computed on the host widens everything that follows.
# expect: DPM306 at centre
import dpnp
import numpy


class Scaler:
    def fit(self, sample):
        self.mean = numpy.mean(sample)
        return self

    def transform(self, x):
        return x - self.mean  # @centre


data = numpy.random.default_rng(0).normal(5, 2, size=250_000)
x = dpnp.asarray(data, dtype=dpnp.float32)
centred = Scaler().fit(data).transform(x)
print(centred.dtype, float(centred.mean()))
