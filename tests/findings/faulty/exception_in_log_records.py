# A logging handler keeps its records, the records keep their exc_info.
# expect: DPM203 at signal
import logging
import logging.handlers

import dpnp

handler = logging.handlers.MemoryHandler(capacity=1_000, flushLevel=logging.CRITICAL)
log = logging.getLogger("filter")
log.addHandler(handler)
log.propagate = False


def apply_filter(length):
    signal = dpnp.ones(1_000_000 + length)  # @signal
    if length > 2:
        raise ValueError(f"filter of {length} taps")
    return float(signal[:length].sum())


for length in range(1, 7):
    try:
        apply_filter(length)
    except ValueError:
        log.error("skipped", exc_info=True)
print(len(handler.buffer), "records")
