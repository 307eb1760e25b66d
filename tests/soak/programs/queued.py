"""Ends with work still queued and results that nobody waited for."""

import dpnp

x = dpnp.ones((600, 600), dtype="f4")
kept = [x @ x for _ in range(20)]
for _ in range(20):
    x @ x
print("last line", flush=True)
