import dpnp

kept = [dpnp.ones(8)]
