def gather(xp, chunks):
    results = []
    for chunk in chunks:
        results.append(xp.asnumpy(xp.asarray(chunk)))
    return results  # xp may be dpnp or cupy
