"""A job that is killed and resumed by tests: python job.py FOLDER KIND [DIE_AFTER]

Maps `FOLDER/source.npy` to `FOLDER/out.npy`, sums it, or both, in small chunks, with a resume file. Prints a line for
each finished chunk; after DIE_AFTER of them it dies by SIGKILL, inside the function.
"""

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import dpnp
import numpy

import dpmem

folder, kind, *rest = sys.argv[1:]
die_after = int(rest[0]) if rest else -1
source, out = f"{folder}/source.npy", f"{folder}/out.npy"
ways = {
    "map": {"out": out, "resume": True},
    "transposed": {"out": out, "resume": True},
    "sum": {"reduce": "sum", "resume": f"{folder}/sum.resume"},
    "own": {"reduce": dpnp.hypot, "resume": f"{folder}/own.resume"},
    "both": {"out": out, "reduce": "mean", "resume": True},
    "concatenate": {"reduce": "concatenate", "resume": f"{folder}/joined.resume"},
}
done = [0]


def fn(x):
    """Something that takes a moment."""
    time.sleep(0.0005)
    y = dpnp.sin(x) + 1
    return y.T if kind == "transposed" else y.sum(axis=0) if kind == "own" else y


def told(finished, total):
    """Dies in time."""
    done[0] += 1
    print(finished, flush=True)
    if done[0] == die_after:
        os.kill(os.getpid(), signal.SIGKILL)


result = dpmem.map_chunks(fn, source, rows=50, progress=told, **ways[kind])
print("result", hashlib.sha256(numpy.ascontiguousarray(result).tobytes()).hexdigest())
if "out" in ways[kind]:
    print("file", hashlib.sha256(Path(out).read_bytes()).hexdigest())
