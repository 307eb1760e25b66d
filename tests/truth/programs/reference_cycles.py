# Arrays in reference cycles: dropped by the collector, and some that still wait for it at the end.
# waits: yes
import gc

import dpnp
from _settle import settle


class Node:
    def __init__(self, n):
        self.data = dpnp.ones(n, dtype="f4")
        settle(self.data)
        self.me = self


gc.disable()
for n in (1000, 2000, 3000):
    Node(n)
anchor = dpnp.zeros(10)
settle(anchor)
print(gc.collect() > 0)
settle(anchor)
nodes = [Node(500), Node(700)]
nodes[0].other, nodes[1].other = nodes[1], nodes[0]
del nodes
print(float(anchor.sum()))
settle(anchor)
