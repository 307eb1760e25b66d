import dpnp


def largest(n: int):
    def inner():
        return dpnp.sort(dpnp.arange(1_000_000))[-5:]  #! DPM202 dpnp.sort(dpnp.arange(1_000_000))[-5:]

    return inner()


five = largest(3)
