import os

if os.environ.get("USE_GPU"):
    import dpnp as np
else:
    import numpy as np

a = np.ones(100)
for _ in range(100):
    b = np.add(a, a)
    print(float(b[0]))
c = np.zeros(10)
c[:] = 3
