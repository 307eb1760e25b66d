import dpnp

points = [dpnp.array(i * 0.5) for i in range(5000)]  #! DPM303 dpnp.array(i * 0.5)
lookup = {i: dpnp.asarray([i, i + 1]) for i in range(5000)}  #! DPM303 dpnp.asarray([i, i + 1])
