"""Runs a program and prints what it left in its globals, for comparison: `run_program.py FILE`.

One JSON object: `error` (name of the exception that ended it, or null) and `values`, by global name. Arrays
are fetched and printed with shape and dtype; what cannot be compared is left out.
"""

import json
import runpy
import sys

import dpnp
import numpy


def comparable(value, depth=0):
    """A JSON value that equals another one exactly if the two values are the same."""
    if isinstance(value, dpnp.ndarray):
        value = dpnp.asnumpy(value)
    if isinstance(value, numpy.ndarray):
        return {"shape": list(value.shape), "dtype": str(value.dtype), "values": repr(value.tolist())}
    if isinstance(value, numpy.generic):
        return {"dtype": str(value.dtype), "value": repr(value.item())}
    if isinstance(value, bool | int | float | complex | str):
        return repr(value)
    if depth < 4 and isinstance(value, list | tuple):
        return [comparable(item, depth + 1) for item in value]
    if depth < 4 and isinstance(value, dict):
        return {repr(key): comparable(item, depth + 1) for key, item in value.items()}
    if depth < 4 and type(value).__module__ == "<run_path>":
        return comparable(vars(value), depth + 1)
    return None


def main():
    """Runs the program named on the command line."""
    sys.stdout, stdout = sys.stderr, sys.stdout
    error, names = None, {}
    try:
        names = runpy.run_path(sys.argv[1])
    except Exception as problem:
        error = type(problem).__name__
    values = {name: comparable(value) for name, value in names.items() if not name.startswith("__")}
    json.dump({"error": error, "values": values}, stdout)


if __name__ == "__main__":
    main()
