# A hand-made memoising decorator without a bound.
# expect: DPM201 at table
# allow: DPM205 at table
import dpnp


def memoise(function):
    results = {}

    def wrapper(key):
        if key not in results:
            results[key] = function(key)
        return results[key]

    return wrapper


@memoise
def table(shift):
    return dpnp.arange(shift, shift + 50_000, dtype=dpnp.float64)  # @table


total = 0.0
for step in range(70):
    total += step * table(step).shape[0]
print(total)
