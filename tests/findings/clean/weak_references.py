# Observers are known by weak references; what nobody uses any more goes away.
import weakref

import dpnp


class Field:
    def __init__(self, size):
        self.values = dpnp.zeros(size, dtype=dpnp.float64)


registry = weakref.WeakValueDictionary()
for i in range(12):
    field = Field(50_000 + i)
    registry[i] = field
    field.values += i
print(len(registry), float(field.values[0]))
