# Only the last result is used, but all of them exist until the device gets there.
# expect: DPM207 at gram
# allow: DPM301 at gram
# allow: DPM302 at gram
import dpnp


def power(x, times):
    gram = None
    for _ in range(times):
        gram = dpnp.matmul(x, x.T)  # @gram
    return gram


x = dpnp.full((1_800, 600), 0.001)
print(float(power(x, 18)[0, 0]))
