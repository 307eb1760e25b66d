import dpnp

x = dpnp.zeros(10)


def show():
    print(x)


show()
x[:] = 1
