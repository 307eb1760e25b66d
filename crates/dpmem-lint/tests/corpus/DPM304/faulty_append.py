import dpnp as np


def collect(n):
    out = np.zeros(0)
    i = 0
    while i < n:
        out = np.append(out, np.ones(3))  #! DPM304 np.append(out, np.ones(3))
        i += 1
    return out


out = collect(6)
