# The corner of each picture is kept, and with it the picture.
# expect: DPM202 at picture
# allow: DPM201 at picture
# allow: DPM205 at picture
import dpnp


def load(i):
    picture = dpnp.full((800, 1_200), i, dtype=dpnp.float32)  # @picture
    return picture


corners = []
for i in range(12):
    corners.append(load(i)[:8, :8])
print(len(corners), float(corners[3].sum()))
