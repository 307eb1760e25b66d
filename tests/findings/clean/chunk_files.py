# Files are read one after the other into the same host buffer and into the same device buffer.
import pathlib
import tempfile

import dpnp
import numpy

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for i in range(28):
        numpy.save(folder / f"part{i:02}.npy", numpy.full(50_000, i, dtype=numpy.float32))
    host = numpy.empty(50_000, dtype=numpy.float32)
    device = dpnp.empty(50_000, dtype=dpnp.float32)
    largest = []
    for path in sorted(folder.glob("*.npy")):
        host[:] = numpy.load(path)
        device[...] = dpnp.asarray(host)
        dpnp.sqrt(device, out=device)
        largest.append(float(dpnp.max(device)))
print(max(largest))
