from dpnp import empty, exp, zeros

grid = zeros((40, 100))
out = empty((40, 100))
for i in range(40):
    out[i] = exp(grid[i])  #! DPM301 exp(grid[i])
