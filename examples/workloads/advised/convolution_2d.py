"""convolution_2d.py, with the kernel on the device and the arrays of a pass made once."""

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


def blur(image, kernel, product):
    """Replaces the image by that after one pass; what lies beyond the border is as bright as the border."""
    height, width = image.shape
    padded = dpnp.pad(image, 1, mode="edge")
    image.fill(0.0)
    for i in range(3):
        for j in range(3):
            dpnp.multiply(kernel[i, j], padded[i : i + height, j : j + width], out=product)
            image += product


def run(image, passes=40):
    """The mean brightness and the deviation after all passes."""
    kernel = dpnp.asarray(KERNEL)
    product = dpnp.empty_like(image)
    image = image.copy()
    for _ in range(passes):
        blur(image, kernel, product)
    return float(image.mean()), float(image.std())


if __name__ == "__main__":
    mean, deviation = run(*initialize())
    print(f"mean {mean:.5f}, deviation {deviation:.5f}")
