"""What all tests share: the CPU device that pip brought, for tests that use dpnp in this very process."""

from dpmem import _icd

_icd.use_pip_runtime()
