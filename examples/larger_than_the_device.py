"""Standardises 200,000 rows of measurements that are taken to be larger than the device: plan, reduce, map.

To plan alone, for a file of your own: dpmem plan larger_than_the_device:standardised measured.npy
"""

import tempfile
from pathlib import Path

import dpnp
import numpy

import dpmem


def standardised(x):
    """Each row with mean 0 and deviation 1."""
    return (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)


def main(folder):
    source = folder / "measured.npy"
    numpy.save(source, numpy.random.default_rng(1).normal(20, 5, (200_000, 32)))

    plan = dpmem.plan_chunks(standardised, source)
    print(plan)

    # Should it be interrupted, the same call goes on where it was.
    result = dpmem.map_chunks(standardised, source, plan=plan, out=folder / "standardised.npy", resume=True)
    print(f"written: {result.shape} {result.dtype}")

    hottest = dpmem.map_chunks(lambda x: x, source, reduce="max")
    energy = dpmem.map_chunks(lambda x: dpnp.sum(x**2), source, reduce="sum")
    print(f"hottest sensor {hottest.argmax()}, energy {energy:.6e}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
