import dpnp


def main(chunks, n):
    for i in range(n):
        buffer = dpnp.zeros((n, 4))  #! DPM301 dpnp.zeros((n, 4))
        buffer[0] = i
        for j in range(4):
            buffer[:, j] += j
    return buffer


buffer = main(None, 30)
