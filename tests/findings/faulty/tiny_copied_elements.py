# Every element is copied into an array of its own.
# expect: DPM303 at element
# allow: DPM201 at element
# allow: DPM205 at element
import dpnp


def split(x):
    elements = []
    for i in range(x.size):
        elements.append(x[i].copy())  # @element
    return elements


elements = split(dpnp.arange(2_200, dtype=dpnp.float32))
print(len(elements), float(elements[-1]))
