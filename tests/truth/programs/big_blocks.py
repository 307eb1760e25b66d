# Blocks of 64 MiB that come and go, and a small view that keeps one of them.
# waits: yes
import dpnp
from _settle import settle

words = (64 << 20) // 4
a = dpnp.zeros(words, dtype="f4")
settle(a)
b = a + a
settle(b)
del a
c = dpnp.empty(words, dtype="f4")
settle(c)
dpnp.add(b, b, out=c)
settle(c)
view = c[10:20]
del b, c
print(view.shape, view.get_array().usm_data.nbytes >> 20)
settle(view)
