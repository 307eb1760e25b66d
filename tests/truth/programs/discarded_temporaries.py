# Long expressions and discarded products that pile up behind queued work; nothing is waited for.
# waits: no
import dpnp

x = dpnp.ones((200, 200), dtype="f4")
for _ in range(15):
    x @ x.T
    2 * x + x * 3 - 1
y = (x + 1) * (x - 1) / (x + 2) + dpnp.exp(-x) * dpnp.cos(x)
print(round(float(y[0, 0]), 4))
