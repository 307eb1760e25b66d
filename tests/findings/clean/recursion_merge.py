# Recursive multigrid restriction: each level is half as large as the one above.
import dpnp


def restrict(fine):
    if fine.size <= 64:
        return fine
    coarse = (fine[::2] + fine[1::2]) * 0.5
    return restrict(coarse)


print(dpnp.asnumpy(restrict(dpnp.arange(131_072, dtype=dpnp.float64)))[:3])
