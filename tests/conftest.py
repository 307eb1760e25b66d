"""What all tests share: the CPU device that pip brought, for tests that use dpnp in this very process."""

from dpmem import _icd

_icd.use_pip_runtime()

from interpreters import package  # noqa: F401
from simulated.fixtures import (  # noqa: F401
    cpu_only,
    gpu_without_driver,
    laptop,
    no_device,
    node,
    opencl_only,
    simulated_kernels,
    workstation,
)
