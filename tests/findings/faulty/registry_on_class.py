# A class keeps every instance it ever made, for "debugging".
# expect: DPM201 at weights
# allow: DPM205 at weights
import dpnp


class Candidate:
    instances = []

    def __init__(self, seed):
        self.weights = dpnp.full((128, 128), seed, dtype=dpnp.float64)  # @weights
        Candidate.instances.append(self)

    def score(self):
        return self.weights.shape[0] * seed_factor(self)


def seed_factor(candidate):
    return len(Candidate.instances) % 7


best = max(Candidate(seed).score() for seed in range(90))
print(best)
