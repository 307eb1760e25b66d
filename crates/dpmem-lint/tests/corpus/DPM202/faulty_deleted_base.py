import dpnp

cube = dpnp.ones((16, 256, 256), dtype=dpnp.float32)
first = cube[0, 0, :10]  #! DPM202 cube[0, 0, :10]
del cube
total = first.sum()
