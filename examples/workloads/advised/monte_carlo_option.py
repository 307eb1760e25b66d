"""monte_carlo_option.py, in single precision throughout and with a running sum in place of the history."""

import math

import dpnp

STRIKE = 105.0
RATE = 0.03
VOLATILITY = 0.25


def initialize():
    """Paths, and days until expiry."""
    return 50_000, 120


def run(paths, days):
    """The discounted mean payoff."""
    dpnp.random.seed(37)
    dt = 1.0 / days
    drift = (RATE - 0.5 * VOLATILITY**2) * dt
    step = VOLATILITY * math.sqrt(dt)
    price = dpnp.full(paths, 100.0, dtype=dpnp.float32)
    total = dpnp.zeros_like(price)
    growth = dpnp.empty_like(price)
    for _ in range(days):
        growth[...] = dpnp.random.normal(0.0, 1.0, paths)
        growth *= step
        growth += drift
        dpnp.exp(growth, out=growth)
        price *= growth
        total += price
    payoff = dpnp.maximum(total / days - STRIKE, 0.0)
    return math.exp(-RATE) * float(payoff.mean())


if __name__ == "__main__":
    print(f"the option is worth {run(*initialize()):.4f}")
