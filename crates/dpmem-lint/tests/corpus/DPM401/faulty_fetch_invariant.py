import dpnp


def total(table: dpnp.ndarray, n):
    result = 0.0
    i = 0
    while i < n:
        result += dpnp.asnumpy(table)[i]  #! DPM401 dpnp.asnumpy(table)
        i += 1
    return result


result = total(dpnp.arange(30), 30)
