"""What all tests share: the CPU device of pip for tests that use dpnp in this very process; stacks of what hangs."""

from dpmem import _icd

_icd.use_pip_runtime()

from hangs import explain_hangs
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

explain_hangs()


def pytest_terminal_summary(terminalreporter):
    """Prints why tests were run again: the summary of pytest names them only."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"run again: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
