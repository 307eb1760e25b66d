import os

if os.name == "posix":
    os.environ["ONEAPI_DEVICE_SELECTOR"] = "gpu"  #! DPM103 os.environ["ONEAPI_DEVICE_SELECTOR"] = "gpu"
else:
    os.environ["ONEAPI_DEVICE_SELECTOR"] = "level-zero:gpu"  #! DPM103 os.environ["ONEAPI_DEVICE_SELECTOR"] = "level-zero:gpu"
import dpctl
