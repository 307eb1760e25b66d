# The three USM kinds: arrays in each, what mixing them gives, and copies between them.
# waits: yes
import dpnp
from _settle import settle

arrays = {}
for kind in ("device", "shared", "host"):
    arrays[kind] = dpnp.ones(2000, dtype="f8", usm_type=kind)
    settle(arrays[kind])
for a in arrays.values():
    for b in arrays.values():
        both = a + b
        settle(both)
        print(a.usm_type, b.usm_type, both.usm_type)
        del both
for kind in arrays:
    moved = dpnp.asarray(arrays["device"], usm_type=kind, copy=True)
    settle(moved)
    print(moved.usm_type, dpnp.asnumpy(moved).sum())
    settle(moved)
arrays["shared"][10:20] = arrays["host"][:10]
settle(arrays["shared"])
del arrays["host"]
