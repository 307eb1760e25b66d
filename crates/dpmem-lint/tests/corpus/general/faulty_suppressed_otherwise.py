import dpnp

x = dpnp.ones(100, dtype="f4")
for _ in range(100):
    y = x * 2  # noqa: E501, DPM401  #! DPM301 x * 2
