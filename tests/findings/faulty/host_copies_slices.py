# The first values of each result are fetched and kept; each rests on a host copy of everything.
# expect: DPM208 at fetch
# allow: DPM201 at fetch
# allow: DPM205 at fetch
import dpnp

state = dpnp.zeros(500_000)
samples = []
for _ in range(24):
    state += 1
    samples.append(state.asnumpy()[:10])  # @fetch
print(samples[-1][0])
