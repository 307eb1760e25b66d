# An array that is longer by one part after every step.
# expect: DPM304 at grow
# allow: DPM201 at grow
# allow: DPM207 at grow
import dpnp

source = dpnp.arange(200_000, dtype=dpnp.float64)
joined = source[:0]
for i in range(40):
    joined = dpnp.concatenate([joined, source[i * 5_000 : (i + 1) * 5_000]])  # @grow
print(joined.size)
