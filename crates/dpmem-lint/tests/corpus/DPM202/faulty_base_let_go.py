import dpnp

images = dpnp.ones((100, 64, 64), dtype=dpnp.float32)
thumbnail = images[0]  #! DPM202 images[0]
images = None
