# A module-level dictionary serves as a cache, keyed by what never comes again.
# expect: DPM205 at spectrum
# allow: DPM201 at spectrum
import dpnp

CACHE = {}
signal = dpnp.random.normal(size=32_768)


def spectrum(shift):
    if shift not in CACHE:
        CACHE[shift] = dpnp.roll(signal, shift)  # @spectrum
    return CACHE[shift]


def analyse():
    best = 0
    for shift in range(64):
        best = max(best, spectrum(shift).size)
    return best


print(analyse())
