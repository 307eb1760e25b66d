# A tree whose nodes know their parents, and which is used to the end.
import dpnp


class Node:
    def __init__(self, depth, parent=None):
        self.parent = parent
        self.field = dpnp.full(20_000, float(depth))
        self.children = [Node(depth - 1, self) for _ in range(2)] if depth else []

    def push(self):
        for child in self.children:
            child.push()
            self.field += child.field


root = Node(2)
for _ in range(5):
    root.push()
print(float(root.field[0]))
