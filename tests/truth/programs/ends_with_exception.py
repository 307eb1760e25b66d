# Ends by an exception that nobody catches; the traceback's frames hold arrays.
# waits: no
# exit: 1
import dpnp


def inner(x):
    y = x * 2
    return y + dpnp.ones(7)


def outer():
    z = dpnp.ones(1000)
    inner(z)


print("begins")
outer()
