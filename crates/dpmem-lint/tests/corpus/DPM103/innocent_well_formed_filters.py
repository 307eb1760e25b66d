import dpctl
import dpnp


def everywhere(name):
    return [
        dpnp.ones(4, device="gpu"),
        dpnp.ones(4, device="level_zero:gpu:0"),
        dpnp.ones(4, device="cpu:opencl"),
        dpnp.ones(4, device=name),
        dpctl.SyclDevice("gpu,cpu"),
        dpctl.SyclQueue("0"),
    ]
