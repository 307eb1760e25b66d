"""What tests of the plugin share."""

import pytest
from suite_sessions import run_suite


@pytest.fixture
def suite(tmp_path):
    """Run a suite in a folder of this test's own."""
    return lambda source, *options, **more: run_suite(tmp_path, source, *options, **more)
