import dpnp

y = dpnp.arange(100, dtype=dpnp.float32)
x = dpnp.zeros(100, dtype=dpnp.float32)  #! DPM305 dpnp.zeros(100, dtype=dpnp.float32)
x[:] = y * 2
