# An undo history as a linked list: each edit holds the one before it.
# expect: DPM201 at edit
import dpnp


class Edit:
    def __init__(self, pixels, before):
        self.pixels = pixels
        self.before = before


def paint(strokes):
    picture = dpnp.zeros((200, 200), dtype=dpnp.uint8)
    last = None
    for i in range(strokes):
        picture[i % 200, :] = i % 256
        last = Edit(picture.copy(), last)  # @edit
    return last.pixels


print(int(paint(150).max()))
