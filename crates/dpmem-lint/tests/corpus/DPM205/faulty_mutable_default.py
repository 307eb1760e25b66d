import dpnp


def collect(n, seen=[]):
    seen.append(dpnp.ones(n))  #! DPM205 seen.append(dpnp.ones(n))
    return len(seen)


def outer():
    def lookup(key, store={}):
        store[key] = dpnp.zeros(100)  #! DPM205 store[key] = dpnp.zeros(100)
        return store[key]

    return lookup
