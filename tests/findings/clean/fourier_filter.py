# A low-pass filter in the frequency domain.
import dpnp

n = 1 << 16
t = dpnp.arange(n, dtype=dpnp.float64)
signal = dpnp.sin(t * 0.01)
signal += dpnp.sin(t * 2.5)
spectrum = dpnp.fft.rfft(signal)
spectrum[n // 16 :] = 0
smooth = dpnp.fft.irfft(spectrum, n=n)
print(dpnp.asnumpy(smooth[:4]))
