import dpnp as np

x = np.ones((4, 4), dtype=np.float32)
half = np.array(0.5)
y = x - half  #! DPM306 x - half
z = x / np.asarray(3.0)  #! DPM306 x / np.asarray(3.0)
