import dpnp
import numpy as np


class Plot:
    def __init__(self, n):
        self.x = dpnp.arange(n)

    def points(self):
        return np.asarray(self.x)  #! DPM402 np.asarray(self.x)

    def both(self):
        return np.concatenate([self.x, self.x])  #! DPM402 np.concatenate([self.x, self.x])


points = Plot(4).points()
both = Plot(4).both()
