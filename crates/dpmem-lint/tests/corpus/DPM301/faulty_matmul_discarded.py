import dpnp

x = dpnp.ones((64, 32), dtype=dpnp.float32)
for _ in range(25):
    x @ x.T  #! DPM301 x @ x.T
    dpnp.matmul(x, x.T)  #! DPM301 dpnp.matmul(x, x.T)
