# Random numbers: a Monte Carlo estimate of pi, several distributions, and a shuffle.
# waits: no
import dpnp

dpnp.random.seed(7)
inside = 0
for _ in range(8):
    x = dpnp.random.rand(10_000)
    y = dpnp.random.rand(10_000)
    inside += int((x * x + y * y <= 1).sum())
print(abs(4 * inside / 80_000 - 3.14159) < 0.05)
normal = dpnp.random.normal(3, 2, size=(50, 100))
print(normal.shape, abs(float(normal.mean()) - 3) < 0.2)
die = dpnp.random.randint(1, 7, size=1000)
print(int(die.min()), int(die.max()), dpnp.random.uniform(-1, 1, size=10).shape)
state = dpnp.random.RandomState(11)
print(state.standard_normal(100).shape, dpnp.random.exponential(2.0, size=20).shape)
