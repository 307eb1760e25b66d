# Batches join what has been predicted so far.
# expect: DPM304 at grow
# allow: DPM201 at grow
# allow: DPM207 at grow
import dpnp


def predict(features, weights, batch):
    predicted = None
    scores = dpnp.empty(batch)
    for start in range(0, features.shape[0], batch):
        dpnp.matmul(features[start : start + batch], weights, out=scores)
        predicted = scores.copy() if predicted is None else dpnp.hstack([predicted, scores])  # @grow
    return predicted


features = dpnp.random.uniform(size=(30_000, 8))
print(predict(features, dpnp.ones(8), 1_000).size)
