# dpnp.append in a function that reads like Python lists.
# expect: DPM304 at grow
# allow: DPM201 at grow
# allow: DPM207 at grow
import dpnp


def trajectory(steps):
    position = dpnp.zeros(1_000, dtype=dpnp.float32)
    path = position.copy()
    for _ in range(steps):
        position += 0.1
        path = dpnp.append(path, position)  # @grow
    return path.reshape(steps + 1, -1)


print(trajectory(60).shape)
