# The learning rate comes out of numpy.linspace; each step computes in double precision.
# expect: DPM306 at step
# allow: DPM301 at step
# allow: DPM302 at step
# allow: DPM207 at step
import dpnp
import numpy

weights = dpnp.ones((300, 300), dtype=dpnp.float32)
gradient = dpnp.full((300, 300), 0.5, dtype=dpnp.float32)
for rate in numpy.linspace(0.1, 0.01, 30):
    weights = (weights - gradient * rate).astype(dpnp.float32)  # @step
print(float(weights[0, 0]))
