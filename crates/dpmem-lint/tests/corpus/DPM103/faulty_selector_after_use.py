import os

import dpnp

x = dpnp.zeros(4)
os.environ["ONEAPI_DEVICE_SELECTOR"] = "*:cpu"  #! DPM103 os.environ["ONEAPI_DEVICE_SELECTOR"] = "*:cpu"
y = dpnp.zeros(4)
