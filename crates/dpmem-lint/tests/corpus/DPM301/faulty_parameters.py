import dpnp as np


def heat(u, steps, alpha):
    for _ in range(steps):
        lap = np.roll(u, 1) + np.roll(u, -1) - 2 * u  #! DPM301 np.roll(u, 1) + np.roll(u, -1) - 2 * u
        u = u + alpha * lap  #! DPM301 u + alpha * lap
    return u
