import dpnp


class Buffers:
    def __init__(self, source):
        buffer = dpnp.zeros(source.shape)  #! DPM305 dpnp.zeros(source.shape)
        dpnp.copyto(buffer, source)
        self.buffer = buffer


buffers = Buffers(dpnp.arange(5.0))
result = buffers.buffer
