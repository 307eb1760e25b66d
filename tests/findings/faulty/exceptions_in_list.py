# Failures are collected for a report at the end.
# expect: DPM203 at block
# allow: DPM201 at block
import dpnp

failures = []


def check(i):
    block = dpnp.full((512, 1_024), i, dtype=dpnp.float64)  # @block
    if float(block[0, 0]) % 3 == 0:
        raise RuntimeError(f"block {i} is divisible by three")


for i in range(12):
    try:
        check(i)
    except RuntimeError as problem:
        failures.append((i, problem))
print(f"{len(failures)} failures: {[i for i, _ in failures]}")
