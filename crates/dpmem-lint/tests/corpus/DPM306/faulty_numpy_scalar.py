import dpnp
import numpy as np

x = dpnp.ones(100, dtype=dpnp.float32)
y = x * np.float64(0.5)  #! DPM306 x * np.float64(0.5)
z = np.float64(2) + x  #! DPM306 np.float64(2) + x
