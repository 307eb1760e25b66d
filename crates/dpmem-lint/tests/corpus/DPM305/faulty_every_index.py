import dpnp


def table(n):
    rows = dpnp.zeros((n, 4), dtype=dpnp.int32)  #! DPM305 dpnp.zeros((n, 4), dtype=dpnp.int32)
    for i in range(n):
        rows[i] = i
    return rows


rows = table(6)
