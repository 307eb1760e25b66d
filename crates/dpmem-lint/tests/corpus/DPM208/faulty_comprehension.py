import dpnp as np

parts = [np.arange(n) for n in range(30, 60)]
hosts = [part.asnumpy() for part in parts]  #! DPM208 part.asnumpy()
by_size = {part.size: np.asnumpy(part) for part in parts}  #! DPM208 np.asnumpy(part)
