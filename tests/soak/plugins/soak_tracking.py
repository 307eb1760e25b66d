"""A pytest plugin: `dpmem.start()` before the first test; what has been recorded goes to the file in SOAK_RECORDED."""

import json
import os

import dpctl

import dpmem


def pytest_sessionstart(session):
    dpmem.start()


def pytest_sessionfinish(session, exitstatus):
    still = dpmem.is_tracking()
    stats = dpmem.memory_stats(dpctl.select_default_device())
    dpmem.stop()
    with open(os.environ["SOAK_RECORDED"], "w") as file:
        json.dump({"tracking": still, "stats": stats}, file)
