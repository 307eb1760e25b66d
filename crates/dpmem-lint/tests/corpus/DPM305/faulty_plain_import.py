from dpnp import arange, zeros

if True:
    x = zeros(10)  #! DPM305 zeros(10)
    y = arange(10)
    x[...] = y
