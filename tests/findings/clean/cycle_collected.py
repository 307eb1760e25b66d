# Nodes know their parents; the collector is called after each tree.
import gc

import dpnp


class Node:
    def __init__(self, parent, size):
        self.parent = parent
        self.children = []
        self.values = dpnp.ones(size)
        if parent is not None:
            parent.children.append(self)


def build_and_measure(size):
    root = Node(None, size)
    for _ in range(3):
        Node(root, size)
    return float(sum(child.values.sum() for child in root.children))


for size in (40_000, 50_000, 60_000):
    print(build_and_measure(size))
    gc.collect()
