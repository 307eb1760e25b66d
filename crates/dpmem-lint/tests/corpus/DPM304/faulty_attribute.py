import dpnp


class Log:
    def __init__(self):
        self.data = dpnp.zeros((0, 3))

    def read(self, rows):
        for row in rows:
            self.data = dpnp.vstack((self.data, row))  #! DPM304 dpnp.vstack((self.data, row))
