import os

os.environ["SYCL_DEVICE_FILTER"] = "level_zero:gpu"  #! DPM103 os.environ["SYCL_DEVICE_FILTER"] = "level_zero:gpu"
import dpnp

x = dpnp.ones(4)
