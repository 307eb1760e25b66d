import logging

import dpnp

log = logging.getLogger(__name__)
x = dpnp.ones(100)
for step in range(1000):
    x *= 0.5
    log.info("norm %s", dpnp.sum(x))  #! DPM403 log.info("norm %s", dpnp.sum(x))
