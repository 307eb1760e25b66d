# Twenty-five large chunks of a device array, one number of each.
import dpnp

values = dpnp.linspace(0, 1, 25 * 40_000)
maxima = [float(values[i : i + 40_000].max()) for i in range(0, values.size, 40_000)]
print(len(maxima), maxima[-1])
