# Parent and children know each other; the collector has been switched off for speed.
# expect: DPM204 at values
# allow: DPM201 at values
import gc

import dpnp

gc.disable()


class Cell:
    def __init__(self, parent=None):
        self.parent = parent
        self.children = []
        self.values = dpnp.zeros((256, 1_024))  # @values
        if parent is not None:
            parent.children.append(self)


def refine():
    root = Cell()
    for _ in range(2):
        Cell(root)
    return len(root.children)


print(sum(refine() for _ in range(3)))
