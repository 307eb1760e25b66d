# The classic: a mutable default argument.
# expect: DPM205 at sample
# allow: DPM201 at sample
import dpnp


def smooth(i, seen=[]):
    seen.append(dpnp.full(80_000, i, dtype=dpnp.float64))  # @sample
    return len(seen)


for i in range(45):
    count = smooth(i)
print(count)
