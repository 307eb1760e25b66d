# The batches of a matrix are multiplied one after the other and only added up.
# expect: DPM301 at dot
# allow: DPM207 at dot
import dpnp

data = dpnp.random.uniform(size=(64, 100, 80))
weights = dpnp.random.uniform(size=(80, 60))
total = dpnp.zeros((100, 60))
for batch in data:
    total += dpnp.dot(batch, weights)  # @dot
print(float(total.sum()))
