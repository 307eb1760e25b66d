# The mean of each group as a 0-d array in a list of lists.
# expect: DPM303 at mean
# allow: DPM201 at mean
# allow: DPM205 at mean
import dpnp

data = dpnp.random.uniform(size=(1_800, 50))
means = [[row.mean()] for row in data]  # @mean
print(len(means), float(means[3][0]))
