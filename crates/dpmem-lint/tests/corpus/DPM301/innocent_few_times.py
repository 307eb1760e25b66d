import dpnp

a = dpnp.ones(1000)
for _ in range(3):
    b = a * 2
for axis in (0, 1):
    c = a + axis
for name in ["x", "y", "z"]:
    for i in range(5):
        d = a - i
while True:
    e = a * 3
    break
