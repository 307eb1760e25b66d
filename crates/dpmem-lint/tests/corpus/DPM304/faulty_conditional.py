import dpnp


async def matches(stream):
    found = None
    async for item in stream:
        x = dpnp.asarray(item)
        if found is None:
            found = x
        else:
            found = dpnp.concatenate((found, x), axis=0)  #! DPM304 dpnp.concatenate((found, x), axis=0)
    return found
