"""Smooths a long signal with a Gaussian kernel: one shifted copy of the signal for each weight, added up."""

import dpnp


def initialize(count=500_000, radius=20):
    """A noisy sine, and the weights of the kernel."""
    dpnp.random.seed(41)
    signal = dpnp.sin(dpnp.linspace(0.0, 60.0, count)) + dpnp.random.normal(0.0, 0.5, count)
    offset = dpnp.arange(-radius, radius + 1)
    kernel = dpnp.exp(-0.5 * (offset / (radius / 3.0)) ** 2)
    return signal, kernel / kernel.sum()


def smooth(signal, kernel):
    """The part of the convolution where the kernel lies within the signal."""
    length = signal.shape[0] - kernel.shape[0] + 1
    result = dpnp.zeros(length)
    for k, weight in enumerate(kernel):
        result = result + weight * signal[k : k + length]
    return result


def run(signal, kernel):
    """How rough the signal was, and is: the mean square of its differences."""
    smoothed = smooth(signal, kernel)
    before = (dpnp.diff(signal) ** 2).mean()
    after = (dpnp.diff(smoothed) ** 2).mean()
    return float(before), float(after)


if __name__ == "__main__":
    before, after = run(*initialize())
    print(f"roughness before {before:.6f}, after {after:.8f}")
