"""Prices European call and put options with the Black-Scholes formula, a million at a time."""

import dpnp

RATE = 0.05
VOLATILITY = 0.2


def initialize(count=1_000_000):
    """Spot prices, strikes and years to expiry."""
    dpnp.random.seed(7)
    spot = dpnp.random.uniform(10.0, 50.0, count)
    strike = dpnp.random.uniform(10.0, 50.0, count)
    years = dpnp.random.uniform(0.5, 2.0, count)
    return spot, strike, years


def normal_cdf(x):
    """The cumulative normal distribution, from its polynomial approximation (Abramowitz and Stegun 26.2.17)."""
    t = 1.0 / (1.0 + 0.2316419 * dpnp.abs(x))
    poly = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    upper = 1.0 - dpnp.exp(-0.5 * x * x) / 2.5066282746310002 * poly
    return dpnp.where(x < 0.0, 1.0 - upper, upper)


def run(spot, strike, years):
    """The mean call and the mean put."""
    deviation = VOLATILITY * dpnp.sqrt(years)
    d1 = (dpnp.log(spot / strike) + (RATE + 0.5 * VOLATILITY * VOLATILITY) * years) / deviation
    d2 = d1 - deviation
    discounted = strike * dpnp.exp(-RATE * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d2)
    put = discounted * normal_cdf(-d2) - spot * normal_cdf(-d1)
    return float(call.mean()), float(put.mean())


if __name__ == "__main__":
    call, put = run(*initialize())
    print(f"mean call {call:.6f}, mean put {put:.6f}")
