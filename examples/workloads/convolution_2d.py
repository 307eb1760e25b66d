"""Blurs an image again and again with a 3 by 3 kernel, by adding shifted copies of it."""

import dpnp
import numpy

KERNEL = numpy.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]], dtype=numpy.float32) / 16.0


def initialize(size=400):
    """An image in single precision: a bright disc on black, with noise."""
    dpnp.random.seed(43)
    axis = dpnp.linspace(-1.0, 1.0, size, dtype=dpnp.float32)
    disc = (axis[:, None] ** 2 + axis[None, :] ** 2 < 0.5).astype(dpnp.float32)
    noise = dpnp.random.normal(0.0, 0.1, (size, size)).astype(dpnp.float32)
    return (disc + noise,)


def blur(image):
    """The image after one pass; what lies beyond the border is as bright as the border."""
    height, width = image.shape
    kernel = dpnp.asarray(KERNEL)
    padded = dpnp.pad(image, 1, mode="edge")
    result = dpnp.zeros_like(image)
    for i in range(3):
        for j in range(3):
            result += kernel[i, j] * padded[i : i + height, j : j + width]
    return result


def run(image, passes=40):
    """The mean brightness and the deviation after all passes."""
    for _ in range(passes):
        image = blur(image)
    return float(image.mean()), float(image.std())


if __name__ == "__main__":
    mean, deviation = run(*initialize())
    print(f"mean {mean:.5f}, deviation {deviation:.5f}")
