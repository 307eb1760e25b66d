import dpnp
import numpy

taps = numpy.hanning(64)
signals = [dpnp.arange(100) for _ in range(30)]
filtered = [dpnp.convolve(s, dpnp.asarray(taps)) for s in signals]  #! DPM401 dpnp.asarray(taps)
