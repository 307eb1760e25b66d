import dpnp


def pads(blocks):
    for block in blocks:
        edge = dpnp.zeros(block.shape[0])
        edge = dpnp.concatenate([edge, block])
        print(edge.shape)
