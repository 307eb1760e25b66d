import dpnp


def first_row():
    cube = dpnp.ones((16, 512, 512))
    cube *= 2
    return cube[0, 0, :10]  #! DPM202 cube[0, 0, :10]


row = first_row()
