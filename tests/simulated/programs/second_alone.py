"""A selector leaves the second card alone, which then goes by the first one's name."""

import dpctl
import dpnp
import simulated_controls as controls
from known_truth import expect, settle

import dpmem

dpmem.start()
x = dpnp.ones(1000, dtype="f8")
settle()
expect("names", [device.filter_string for device in dpctl.get_devices()], ["level_zero:gpu:0"])
expect("in use", (dpmem.memory_allocated(), dpmem.memory_allocated("level_zero:gpu:0")), (8000, 8000))
expect("as the devices count", [controls.used(0), controls.used(1)], [0, 8000])
controls.set_others(7 << 30, 1)
expect("free", dpmem.mem_get_info().free, controls.free(1))
expect("the default", [device.filter for device in dpmem.devices() if device.default], ["level_zero:gpu:0"])
