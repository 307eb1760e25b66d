# A recorder object keeps each frame, and nobody ever reads them.
# expect: DPM201 at frame
import dpnp


class Recorder:
    def __init__(self):
        self.frames = []

    def record(self, image):
        self.frames.append(dpnp.sqrt(image))  # @frame


class Camera:
    def __init__(self, shape):
        self.image = dpnp.ones(shape, dtype=dpnp.float32)
        self.recorder = Recorder()

    def expose(self):
        self.image += 1
        self.recorder.record(self.image)


def main():
    camera = Camera((240, 320))
    for _ in range(100):
        camera.expose()
    print(float(camera.image[0, 0]))


main()
