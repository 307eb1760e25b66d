# A generator hands out chunks; the caller keeps running extremes as Python numbers.
import dpnp
import numpy


def batches(data, size):
    for start in range(0, len(data), size):
        yield dpnp.asarray(data[start : start + size])


def extremes(data):
    low, high = float("inf"), float("-inf")
    for batch in batches(data, 16_384):
        low = min(low, float(batch.min()))
        high = max(high, float(batch.max()))
    return low, high


print(extremes(numpy.random.default_rng(1).normal(size=26 * 16_384)))
