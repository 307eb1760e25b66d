# A table as a dictionary of short arrays.
# expect: DPM303 at row
# allow: DPM201 at row
# allow: DPM205 at row
# allow: DPM401 at row
import dpnp
import numpy

measured = numpy.random.default_rng(2).random((3_000, 6))
table = {}
for number, values in enumerate(measured):
    table[number] = dpnp.asarray(values)  # @row
print(len(table), float(table[17].sum()))
