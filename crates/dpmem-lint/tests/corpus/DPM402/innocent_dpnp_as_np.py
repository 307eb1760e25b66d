import dpnp as np

x = np.linspace(0, 1, 100)
y = np.sin(x) + np.ones(100)
z = np.concatenate([x, y])
