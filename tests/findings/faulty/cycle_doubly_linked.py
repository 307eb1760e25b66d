# A ring of buffers that nobody enters any more.
# expect: DPM204 at data
import gc

import dpnp


class Link:
    def __init__(self, size):
        self.data = dpnp.ones(size, dtype=dpnp.int32)  # @data
        self.next = self.previous = None


def ring(length, size):
    links = [Link(size) for _ in range(length)]
    for left, right in zip(links, links[1:] + links[:1]):
        left.next, right.previous = right, left
    return int(links[0].next.data[0])


gc.disable()
print(ring(5, 1_000_000))
