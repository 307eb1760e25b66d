# One fetched copy per image of a stack, all in a dictionary.
# expect: DPM208 at fetch
# allow: DPM201 at fetch
# allow: DPM205 at fetch
import dpnp

stack = dpnp.random.uniform(size=(20, 256, 256))
images = {f"image{i:02}": dpnp.asnumpy(stack[i].copy()) for i in range(20)}  # @fetch
print(len(images), images["image07"].shape)
