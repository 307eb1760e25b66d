# Bad batches raise; the handler counts them and keeps nothing.
import dpnp


def process(i):
    work = dpnp.full(100_000 + i, i, dtype=dpnp.float32)
    if i % 3 == 0:
        raise ValueError(f"bad batch {i}")
    return float(work[0])


failed, total = 0, 0.0
messages = []
for i in range(15):
    try:
        total += process(i)
    except ValueError as error:
        failed += 1
        messages.append(str(error))
print(failed, total, messages[0])
