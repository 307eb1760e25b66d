# Two nested loops compare pixels one by one.
# expect: DPM403 at pixel
import dpnp

image = dpnp.random.uniform(size=(18, 20))
bright = 0
for y in range(image.shape[0]):
    for x in range(image.shape[1]):
        if image[y, x] > 0.5:  # @pixel
            bright += 1
print(bright)
