# A comprehension scores many shifts and keeps one number of each.
# expect: DPM301 at score
# allow: DPM403 at score
# allow: DPM207 at score
import dpnp

signal = dpnp.linspace(-1, 1, 120_000)
scores = [float(dpnp.max(signal + shift)) for shift in range(64)]  # @score
print(max(scores))
