# Heat flows along a rod; every step writes into arrays that exist.
import dpnp


def simulate(cells=100_000, steps=150, alpha=0.1):
    heat = dpnp.zeros(cells, dtype=dpnp.float64)
    heat[cells // 2] = 1000.0
    flow = dpnp.empty(cells - 2, dtype=dpnp.float64)
    for _ in range(steps):
        dpnp.add(heat[:-2], heat[2:], out=flow)
        dpnp.subtract(flow, heat[1:-1], out=flow)
        dpnp.subtract(flow, heat[1:-1], out=flow)
        dpnp.multiply(flow, alpha, out=flow)
        dpnp.add(heat[1:-1], flow, out=heat[1:-1])
    return heat


print(float(simulate().sum()))
