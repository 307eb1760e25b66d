def work(n):
    import dpnp as d

    big = d.ones((n, 1000))
    for i in range(n):
        row = big[i] * 2  #! DPM301 big[i] * 2
        big[i] = row
    return d.asnumpy(big)
