import dpmem
import dpnp
from dpmem import chunks

total = 0.0
for index, x in dpmem.chunks("a.npy"):
    total += float(dpnp.sum(x))
for number, (index, x) in enumerate(chunks("a.npy", 100)):
    if bool(dpnp.any(x)):
        print(number)
