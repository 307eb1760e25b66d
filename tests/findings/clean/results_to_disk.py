# Twenty-five results are fetched and written; none stays in memory.
import pathlib
import tempfile

import dpnp
import numpy

with tempfile.TemporaryDirectory() as folder:
    state = dpnp.zeros(30_000)
    for step in range(25):
        for _ in range(3):
            state += 1
        numpy.save(pathlib.Path(folder) / f"{step}.npy", dpnp.asnumpy(state))
    print(len(list(pathlib.Path(folder).iterdir())))
