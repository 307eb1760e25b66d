import dpnp
import numpy as np

x = dpnp.ones((3, 4))
print(np.shape(x), np.ndim(x), np.size(x), np.isscalar(x), np.result_type(x))
y = np.zeros(np.shape(x))
z = np.float64(x[0, 0])
