import dpnp

x = dpnp.ones((4, 4))  #! DPM305 dpnp.ones((4, 4))
x.fill(7)
z = dpnp.full((4, 4), 3, dtype="f4", order="F")  #! DPM305 dpnp.full((4, 4), 3, dtype="f4", order="F")
z[:, :] = 2
w = dpnp.full_like(z, 5)  #! DPM305 dpnp.full_like(z, 5)
w.fill(1.5)
