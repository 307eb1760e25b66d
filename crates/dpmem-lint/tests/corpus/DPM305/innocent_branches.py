import dpnp


def f(flag, items, n):
    x = dpnp.zeros(100)
    if flag:
        x[:] = 1
    y = dpnp.zeros(n)
    for i in range(n):
        if items[i]:
            y[i] = 1
    z = dpnp.zeros(n)
    for i in range(n):
        if not items[i]:
            break
        z[i] = 1
    w = dpnp.zeros(n)
    for item in items:
        w[item] = 1
    return x, y, z, w
