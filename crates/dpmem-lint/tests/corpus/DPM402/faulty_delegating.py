import dpnp as dnp
import numpy as np

x = dnp.arange(12)
total = np.sum(x)  #! DPM402 np.sum(x)
table = np.reshape(x, (3, 4))  #! DPM402 np.reshape(x, (3, 4))
