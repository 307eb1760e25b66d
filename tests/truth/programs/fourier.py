# FFTs in one and two dimensions, real and complex, forwards and back, with and without padding.
# waits: no
import dpnp

t = dpnp.arange(1024, dtype="f8") / 1024
signal = dpnp.sin(2 * dpnp.pi * 50 * t) + 0.5 * dpnp.sin(2 * dpnp.pi * 120 * t)
spectrum = dpnp.fft.rfft(signal)
print(int(dpnp.argmax(dpnp.abs(spectrum))))
back = dpnp.fft.irfft(spectrum)
print(round(float(dpnp.abs(back - signal).max()), 6))
image = dpnp.reshape(signal, (32, 32))
plane = dpnp.fft.fft2(image)
plane[8:24, 8:24] = 0
smooth = dpnp.fft.ifft2(plane).real
print(smooth.shape, dpnp.fft.fftshift(plane).shape, dpnp.fft.fft(signal, n=2000).shape)
for n in (64, 100, 101):
    print(n, round(float(dpnp.abs(dpnp.fft.fft(dpnp.ones(n))).sum()), 6))
