import dpnp


def norms(n, matrix: dpnp.ndarray):
    result = {}
    for i in range(n):
        result[i] = dpnp.linalg.norm(matrix)  #! DPM303 dpnp.linalg.norm(matrix)
    return result
