# Handlers are bound methods of the object that stores them.
# expect: DPM204 at buffer
import gc

import dpnp


class Stage:
    def __init__(self, size):
        self.buffer = dpnp.empty(size, dtype=dpnp.float64)  # @buffer
        self.handlers = {"reset": self.reset, "scale": self.scale}

    def reset(self):
        self.buffer[...] = 0

    def scale(self):
        self.buffer *= 2


def pipeline():
    for size in (500_000, 600_000, 700_000):
        stage = Stage(size)
        for handler in stage.handlers.values():
            handler()


gc.set_threshold(100_000)
pipeline()
