# Counts of 32 chunks are added up on the device; the one read comes at the end.
import dpnp
import numpy

rng = numpy.random.default_rng(0)
counts = dpnp.zeros(64, dtype=dpnp.int64)
for _ in range(32):
    values = dpnp.asarray(rng.integers(0, 64, size=10_000))
    counts += dpnp.bincount(values, minlength=64)
print(dpnp.asnumpy(counts))
