import os
import subprocess
import sys

import dpnp

x = dpnp.zeros(4)
os.environ["ONEAPI_DEVICE_SELECTOR"] = "*:cpu"
subprocess.run([sys.executable, "-c", "import dpnp"])
del os.environ["ONEAPI_DEVICE_SELECTOR"]
os.environ.pop("SYCL_DEVICE_FILTER", None)
print(os.environ.get("SYCL_BE"))
