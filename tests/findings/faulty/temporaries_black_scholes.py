# A formula of finance as it stands in the book.
# expect: DPM302
import dpnp


def call_price(price, strike, years, rate, sigma):
    d1 = (dpnp.log(price / strike) + (rate + sigma * sigma / 2) * years) / (sigma * dpnp.sqrt(years))
    return price * d1 - strike * dpnp.exp(-rate * years) * (d1 - sigma * dpnp.sqrt(years))


n = 1_500_000
price = dpnp.random.uniform(10, 50, size=n)
result = float(call_price(price, 30.0, dpnp.full(n, 2.0), 0.02, 0.3).mean())
print(result)
