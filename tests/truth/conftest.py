"""Fixtures of the truth tests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest


@pytest.fixture(scope="session")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What every run of a program has set: kernels that one run has compiled are there for the next."""
    return {"SYCL_CACHE_PERSISTENT": "1", "SYCL_CACHE_DIR": str(tmp_path_factory.mktemp("kernels"))}
