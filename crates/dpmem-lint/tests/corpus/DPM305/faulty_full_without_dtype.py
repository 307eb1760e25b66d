import dpnp

x = dpnp.full(10, 7)  #! DPM305 dpnp.full(10, 7)
x[:] = 1.5
