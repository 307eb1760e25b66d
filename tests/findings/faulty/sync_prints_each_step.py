# A device array is printed on every step.
# expect: DPM403 at show
import dpnp

population = dpnp.array([100.0, 50.0, 10.0])
growth = dpnp.array([1.02, 0.99, 1.1])
for year in range(40):
    population *= growth
    print(year, population)  # @show
