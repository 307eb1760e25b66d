# Thresholds are tried one after the other; each makes a mask and an array.
# expect: DPM301 at keep
# allow: DPM207 at keep
# allow: DPM302 at keep
import dpnp

image = dpnp.random.randint(0, 256, size=(300, 400)).astype(dpnp.int32)
total = dpnp.zeros((300, 400), dtype=dpnp.int32)
for threshold in range(0, 250, 5):
    total += dpnp.where(image > threshold, image, 0)  # @keep
print(int(total.max()))
