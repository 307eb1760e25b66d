import dpnp


def main(n):
    a = dpnp.zeros(n, device="cpu")
    b = dpnp.zeros(n, device="level_zero:gpu")
    a += b  #! DPM104 a += b
    return dpnp.concatenate([a, b])  #! DPM104 dpnp.concatenate([a, b])
