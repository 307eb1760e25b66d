# sys.exc_info() is put aside for a log that nobody writes.
# expect: DPM203 at samples
import sys

import dpnp

problems = {}


def normalise(name, level):
    samples = dpnp.full(2_000_000, level, dtype=dpnp.float32)  # @samples
    peak = float(samples.max())
    samples /= 1 / peak if peak else 1 / int(peak)
    return peak


for name, level in {"left": 0.5, "right": 0.0, "centre": 0.25}.items():
    try:
        print(name, normalise(name, level))
    except ZeroDivisionError:
        problems[name] = sys.exc_info()
print(list(problems))
