# Six steps, each with results of its own. Nobody rewrites that for out=.
import dpnp

x = dpnp.random.uniform(size=100_000)
for power in range(6):
    y = x**power
    print(power, float(y.mean()))
