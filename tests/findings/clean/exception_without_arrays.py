# Errors are kept, but the frames they remember hold no array.
import dpnp


def parse(text):
    if not text.isdigit():
        raise ValueError(f"no number: {text}")
    return int(text)


errors = []
sizes = []
for text in ("100000", "x", "200000", "y1", "300000"):
    try:
        sizes.append(parse(text))
    except ValueError as error:
        errors.append(error.with_traceback(None))
total = sum(float(dpnp.ones(size).sum()) for size in sizes)
print(total, errors)
