import dpnp as np

a = np.ones((8, 8), dtype=np.float32)
b = np.zeros((8, 8), dtype=np.float32)
for step in range(100):
    c = a * b  #! DPM301 a * b
    np.add(a, c, out=a)
