import dpnp


async def step(queue, x: dpnp.ndarray):
    while await queue.ready():
        x *= 0.5
        if (error := float(dpnp.max(x))) < 1e-3:  #! DPM403 float(dpnp.max(x))
            return error
