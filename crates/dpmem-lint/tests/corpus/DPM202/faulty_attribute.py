import dpnp as np


class Model:
    def __init__(self, n):
        table = np.zeros((n, 4))
        table[0] = 1
        self.head = table[0]  #! DPM202 table[0]


head = Model(100_000).head
