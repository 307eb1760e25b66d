# The array-API namespace below dpnp: dpnp.tensor in newer releases, dpctl.tensor before.
# waits: no
try:
    import dpnp.tensor as tensor
except ImportError:
    import dpctl.tensor as tensor

x = tensor.reshape(tensor.arange(600, dtype="f4"), (20, 30))
y = tensor.astype(x, "f8")
z = tensor.concat([x, x], axis=0)
print(z.shape, float(tensor.sum(z)), tensor.matmul(x, tensor.permute_dims(x, (1, 0))).shape)
print(tensor.to_numpy(tensor.max(x, axis=0))[:3].tolist(), int(tensor.argmax(x)))
mask = x > 100
print(x[mask].shape, tensor.where(mask, x, tensor.zeros_like(x)).shape, tensor.unique_values(x % 7).shape)
s = tensor.ones(50, usm_type="shared")
h = tensor.asarray([1.0, 2.0], usm_type="host")
print(float(tensor.sum(s) + tensor.sum(h)), tensor.stack([y, y]).shape)
print(tensor.take(x, tensor.asarray([1, 2]), axis=1).shape, tensor.usm_ndarray((4, 4), dtype="i4").shape)
x[3, :] = 0
del y, z
