import dpnp


def run(kind, steps):
    a = dpnp.ones(100, dtype="f4")
    match kind:
        case "double":
            for _ in range(steps):
                b = a * 2  #! DPM301 a * 2
            return b
        case _:
            return a


b = run("double", 30)
