import dpnp


def gather(parts, sink):
    hosts = []
    for part in parts:
        sink(dpnp.sum(part))
        hosts.append(part.asnumpy())  #! DPM208 part.asnumpy()
    return hosts
