import dpctl.tensor as dpt


def drain(source):
    out = []
    while source:
        block = dpt.asarray(source.pop())
        out.append(dpt.to_numpy(block))  #! DPM208 dpt.to_numpy(block)
        out += [dpt.asnumpy(block)]  #! DPM208 dpt.asnumpy(block)
    return out
