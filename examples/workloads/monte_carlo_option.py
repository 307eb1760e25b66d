"""Prices an Asian call option: simulates daily prices on many paths and averages the payoff."""

import math

import dpnp
import numpy

STRIKE = 105.0
RATE = numpy.float64(0.03)
VOLATILITY = numpy.float64(0.25)


def initialize():
    """Paths, and days until expiry."""
    return 50_000, 120


def run(paths, days):
    """The discounted mean payoff."""
    dpnp.random.seed(37)
    dt = 1.0 / days
    drift = (RATE - 0.5 * VOLATILITY**2) * dt
    step = VOLATILITY * numpy.sqrt(dt)
    price = dpnp.full(paths, 100.0, dtype=dpnp.float32)
    history = []
    for _ in range(days):
        shock = dpnp.random.normal(0.0, 1.0, paths).astype(dpnp.float32)
        price = price * dpnp.exp(drift + step * shock)
        history.append(price)
    mean = dpnp.stack(history).mean(axis=0)
    payoff = dpnp.maximum(mean - STRIKE, 0.0)
    return math.exp(-RATE) * float(payoff.mean())


if __name__ == "__main__":
    print(f"the option is worth {run(*initialize()):.4f}")
