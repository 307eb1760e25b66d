# Operands of different dtypes: promoted results and the full-size casts that some of them need.
# waits: no
import dpnp

names = ("bool", "i4", "i8", "f4", "f8", "c8", "c16")
arrays = {name: dpnp.ones(3000, dtype=name) for name in names}
for left in names:
    print(left, [str((arrays[left] * arrays[right]).dtype) for right in names])
x = arrays["f4"]
for scalar in (2, 2.5, 1j, True):
    print(type(scalar).__name__, (x + scalar).dtype)
x += arrays["i4"]
dpnp.add(arrays["i4"], arrays["f4"], out=arrays["f8"])
print(float(x.sum()), float(arrays["f8"].sum()))
