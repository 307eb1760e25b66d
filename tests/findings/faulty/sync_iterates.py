# Python's own loop walks over a device array.
# expect: DPM403 at walk
import dpnp


def count_peaks(signal):
    peaks, before = 0, 0.0
    for value in signal:
        if value > before:  # @walk
            peaks += 1
        before = value
    return peaks


print(count_peaks(dpnp.sin(dpnp.linspace(0, 60, 300))))
