import dpnp


def sizes(n, chunks):
    a = dpnp.ones(n)
    for i in range(n):
        part = a[i:] * 2
        buffer = dpnp.zeros(i + 1)
        chosen = a[a > 0] + 1
        print(part.shape, buffer.shape, chosen.shape)
    for chunk in chunks:
        device = dpnp.asarray(chunk)
        squared = device * device
        print(squared.shape)
