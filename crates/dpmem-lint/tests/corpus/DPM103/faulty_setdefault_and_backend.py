import os

os.environ.setdefault("SYCL_BE", "PI_OPENCL")  #! DPM103 os.environ.setdefault("SYCL_BE", "PI_OPENCL")
os.putenv("SYCL_DEVICE_TYPE", "GPU")  #! DPM103 os.putenv("SYCL_DEVICE_TYPE", "GPU")
