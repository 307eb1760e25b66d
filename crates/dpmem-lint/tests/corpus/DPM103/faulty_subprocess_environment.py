import os
import subprocess
import sys

environment = dict(os.environ, SYCL_DEVICE_FILTER="cpu")  #! DPM103 SYCL_DEVICE_FILTER="cpu"
other = {**os.environ, "SYCL_DEVICE_FILTER": "gpu"}  #! DPM103 "SYCL_DEVICE_FILTER": "gpu"
subprocess.run([sys.executable, "-c", "import dpnp"], env=environment)
