# An array that grows by concatenation in a loop, and joining once; stacks, tiles, repeats, splits, padding.
# waits: no
import dpnp

grown = dpnp.empty(0, dtype="f4")
pieces = []
for i in range(20):
    piece = dpnp.full(100, float(i), dtype="f4")
    pieces.append(piece)
    grown = dpnp.concatenate([grown, piece])
once = dpnp.concatenate(pieces)
print(grown.shape, bool((grown == once).all()))
table = dpnp.stack(pieces)
print(table.shape, dpnp.hstack(pieces).shape, dpnp.vstack([table, table]).shape)
print(dpnp.tile(table, (2, 3)).shape, dpnp.repeat(table, 2, axis=0).shape)
print([part.shape for part in dpnp.split(once, 4)], dpnp.pad(table, 2).shape, dpnp.roll(table, 5).shape)
print(dpnp.append(once, dpnp.ones(5, dtype="f4")).shape)
