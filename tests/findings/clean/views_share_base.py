# Views of one base that lives on: the base is used, nothing is pinned in vain.
import dpnp

base = dpnp.zeros((64, 20_000), dtype=dpnp.float32)
rows = [base[i] for i in range(64)]
halves = base[:, :10_000], base[:, 10_000:]
for i, row in enumerate(rows):
    row += i
for half in halves:
    half *= 2
print(float(base.sum()))
