import dpnp


def frames(n, sink, store):
    a = dpnp.ones(1000)
    kept = []
    for i in range(n):
        frame = a * i
        kept.append(frame)
        other = a + i
        sink(other)
        store[i] = a - i
        yield a / 2
    return kept


class Keeper:
    def keep(self, n):
        a = dpnp.ones(10)
        for i in range(n):
            self.last = a + i
            view = a * i
            tail = view[1:]
            self.tails.append(tail)
