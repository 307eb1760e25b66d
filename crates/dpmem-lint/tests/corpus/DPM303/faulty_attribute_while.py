import dpnp


class Monitor:
    def __init__(self):
        self.energies = []
        self.field = dpnp.ones((10, 10))

    def run(self, limit):
        step = 0
        while step < limit:
            self.energies.append(dpnp.max(self.field))  #! DPM303 dpnp.max(self.field)
            step += 1


monitor = Monitor()
monitor.run(3)
