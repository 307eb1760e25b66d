# Lists of results that are alive when the program ends, made at several lines in several sizes.
# waits: yes
import dpnp
from _settle import settle

kept = []
for i in range(10):
    block = dpnp.full(1000 + i, float(i))
    settle(block)
    kept.append(block)
    if i % 2:
        other = block * block
        settle(other)
        kept.append(other)
        gone = kept.pop(0)
        del gone, other
    del block
shared = dpnp.zeros(500, usm_type="shared")
settle(shared)
print(len(kept), sum(x.nbytes for x in kept))
