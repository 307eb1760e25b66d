# A module-level dictionary that throws its oldest entry away.
import dpnp

_masks = {}


def mask(size):
    if size not in _masks:
        if len(_masks) >= 3:
            _masks.pop(next(iter(_masks)))
        _masks[size] = dpnp.tri(size, dtype=dpnp.float32)
    return _masks[size]


for size in (100, 200, 300, 100, 400, 500, 200, 600, 300, 100, 700, 100):
    print(size, float(mask(size).sum()))
