# Exceptions that fly through frames with arrays: some are dropped, some are stored and keep the arrays.
# waits: no
import dpnp

stored = []


def step(n, depth):
    local = dpnp.ones(n, dtype="f4")
    if depth:
        return step(n * 2, depth - 1) + local[:1]
    raise ValueError(f"at {local.shape}")


for n in (100, 200, 300):
    try:
        step(n, 3)
    except ValueError as error:
        print(error)
        if n == 200:
            stored.append(error)
try:
    dpnp.ones(3) + dpnp.ones(4)
except ValueError as error:
    stored.append(error)
try:
    dpnp.linalg.solve(dpnp.zeros((3, 3)), dpnp.ones(3))
except Exception as error:
    print(type(error).__name__)
print(len(stored))
