# A button holds a lambda, the lambda holds the button.
# expect: DPM204 at image
import gc

import dpnp


class Button:
    def __init__(self, level):
        self.image = dpnp.full((600, 800), level, dtype=dpnp.float32)  # @image
        self.on_click = lambda: self.image.fill(0)


def show_dialog():
    buttons = [Button(level) for level in range(4)]
    buttons[0].on_click()


gc.disable()
show_dialog()
print("closed")
