# Conway's game on a torus with a padded board and a buffer for the counts.
import dpnp

n = 128
board = dpnp.zeros((n + 2, n + 2), dtype=dpnp.int8)
board[1:-1, 1:-1] = dpnp.random.randint(0, 2, size=(n, n))
cells = board[1:-1, 1:-1]
count = dpnp.empty((n, n), dtype=dpnp.int8)
three = dpnp.empty((n, n), dtype=bool)
two = dpnp.empty((n, n), dtype=bool)
alive = dpnp.empty((n, n), dtype=bool)
for _ in range(40):
    board[0], board[-1] = board[-2], board[1]
    board[:, 0], board[:, -1] = board[:, -2], board[:, 1]
    count[...] = 0
    for dy in range(3):
        for dx in range(3):
            if (dy, dx) != (1, 1):
                dpnp.add(count, board[dy : dy + n, dx : dx + n], out=count)
    dpnp.equal(count, 3, out=three)
    dpnp.equal(count, 2, out=two)
    dpnp.equal(cells, 1, out=alive)
    two &= alive
    three |= two
    cells[...] = three
print(int(cells.sum()))
