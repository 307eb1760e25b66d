import dpnp as np
import numba_dpex as dpex


@dpex.kernel
def kernel(a, b):
    for i in range(100):
        b[i] = float(a[i])


@dpex.dpjit
def compiled(n):
    a = np.ones(n)
    for i in range(n):
        b = a + i
        if a[i] > 3:
            return b
