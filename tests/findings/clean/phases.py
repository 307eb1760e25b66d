# Three phases, each with arrays of its own that go before the next starts.
import dpnp


def prepare(n):
    raw = dpnp.random.uniform(size=(n, n))
    return raw - raw.mean(axis=0)


def covariance(x):
    return (x.T @ x) / (x.shape[0] - 1)


def whiten(x, c):
    values, vectors = dpnp.linalg.eigh(c)
    return x @ (vectors / dpnp.sqrt(values))


x = prepare(150)[:, :40]
x = x.copy()
c = covariance(x)
y = whiten(x, c)
print(y.shape, float(dpnp.abs(covariance(y) - dpnp.eye(40)).max()) < 1e-6)
