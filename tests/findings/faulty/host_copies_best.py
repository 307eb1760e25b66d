# The best rows of a search live on as views of host copies.
# expect: DPM208 at fetch
# allow: DPM201 at fetch
import dpnp


def best_rows(rounds):
    scores = dpnp.random.uniform(size=(1_000, 200))
    best = []
    for i in range(rounds):
        scores *= 1.5
        host = scores.asnumpy()  # @fetch
        best.append(host[i])
    return best


rows = best_rows(22)
print(len(rows), rows[0].shape)
