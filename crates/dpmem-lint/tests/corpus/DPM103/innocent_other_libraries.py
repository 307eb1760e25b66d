import torch

model = torch.ones(4, device="CUDA:0:0:0")
print("SYCL_DEVICE_FILTER", "is gone")
settings = {"device": "GPU", "dpnp": True}
