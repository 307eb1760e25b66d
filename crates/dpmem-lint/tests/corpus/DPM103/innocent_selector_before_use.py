import os

os.environ["ONEAPI_DEVICE_SELECTOR"] = "level_zero:gpu;opencl:*"
os.environ.setdefault("ONEAPI_DEVICE_SELECTOR", "!cuda:*")
import dpnp

x = dpnp.zeros(4)
