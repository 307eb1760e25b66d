"""`compute:DEVICE`: does dpnp compute there what NumPy computes? `memory:DEVICE=NUMBER`: is memory counted?

Prints one JSON object: the devices, the default, and of each device named what is wrong and what allocations show.
"""

import json
import os
import sys

import dpctl
import dpctl.memory
import dpnp
import numpy
from dpctl.utils import SequentialOrderManager

import dpmem

GIB = 1 << 30


def wrong_results(device):
    """Names of the operations whose results differ from NumPy's."""
    generator = numpy.random.default_rng(5)
    host = generator.random((40, 50))
    whole = generator.integers(0, 1000, 3000)
    x = dpnp.asarray(host, device=device)
    n = dpnp.asarray(whole, device=device)
    pairs = {
        "arithmetic": (2 * x + x / 3 - x**2, 2 * host + host / 3 - host**2),
        "functions": (dpnp.exp(dpnp.sin(x)), numpy.exp(numpy.sin(host))),
        "strided": (x[::2, ::-3] + x.T[:17, :20].T, host[::2, ::-3] + host.T[:17, :20].T),
        "comparison": (x > 0.5, host > 0.5),
        "cast": (x.astype("f4"), host.astype("f4")),
        "sum": (x.sum(), host.sum()),
        "axis": (x.mean(axis=1), host.mean(axis=1)),
        "extrema": (x.max(axis=0), host.max(axis=0)),
        "std": (x.std(), host.std()),
        "cumsum": (dpnp.cumsum(n), numpy.cumsum(whole)),
        "sort": (dpnp.sort(n), numpy.sort(whole)),
        "argsort": (dpnp.argsort(x, axis=1, kind="stable"), numpy.argsort(host, axis=1, kind="stable")),
        "unique": (dpnp.unique(n), numpy.unique(whole)),
        "mask": (x[x > 0.5], host[host > 0.5]),
        "take": (n[n % 7], whole[whole % 7]),
        "where": (dpnp.where(x > 0.5, x, -x), numpy.where(host > 0.5, host, -host)),
        "concatenate": (dpnp.concatenate([n, n[::-1]]), numpy.concatenate([whole, whole[::-1]])),
        "integer product": (
            n[:100].reshape(10, 10) @ n[100:200].reshape(10, 10),
            whole[:100].reshape(10, 10) @ whole[100:200].reshape(10, 10),
        ),
    }
    put_at, put_by = dpnp.zeros(9, dtype="i8", device=device), numpy.zeros(9, dtype="i8")
    put_at[n[:3] % 9] = 4
    put_by[whole[:3] % 9] = 4
    pairs["put"] = (put_at, put_by)
    return sorted(name for name, (ours, theirs) in pairs.items() if not numpy.allclose(ours.asnumpy(), theirs))


def random_is_right(device):
    """Uniform numbers of the generator that dpnp has for this type of device."""
    state = dpnp.random.RandomState(seed=77, sycl_queue=dpctl.SyclQueue(device))
    numbers = state.uniform(size=4000).asnumpy()
    if device.has_aspect_cpu:
        return bool(abs(numbers.mean() - 0.5) < 0.02)
    # multiplicative congruential: 13**13 modulo 2**59
    expected, value = [], 77
    for _ in range(4000):
        expected.append(value / 2**59)
        value = value * 13**13 % 2**59
    return bool(numpy.allclose(numbers, expected))


def attempt(call):
    try:
        call()
    except dpctl.memory.USMAllocationError:
        return "refused"
    return None


def memory(device, number):
    import simulated_controls as controls

    queue = dpctl.SyclQueue(device)
    name = device.filter_string
    settle()
    found = {"ledger": [], "used": []}

    def look():
        settle()
        rows = dpmem.memory_stats(name)
        found["ledger"].append(rows["allocated_bytes.device.current"] + rows["allocated_bytes.shared.current"])
        found["used"].append(controls.used(number))

    look()
    kept = [dpnp.ones(100_003, dtype="f8", device=device, usm_type=kind) for kind in ("device", "shared", "host")]
    kept += [kept[0] * 2, kept[0][:7]]
    look()
    kept.append(dpctl.memory.MemoryUSMDevice(5_000_001, queue=queue))
    look()
    del kept[:]
    look()

    room = device.global_mem_size
    found["too large"] = attempt(lambda: dpnp.empty(room + 1, dtype="u1", device=device))
    blocks = []
    while (failure := attempt(lambda: blocks.append(dpctl.memory.MemoryUSMDevice(GIB, queue=queue)))) is None:
        assert len(blocks) < 100, "no end of memory"
    found["full"] = failure
    found["filled_gib"] = len(blocks)
    look()
    del blocks[-2:]
    found["room again"] = attempt(lambda: blocks.append(dpctl.memory.MemoryUSMDevice(2 * GIB, queue=queue)))
    del blocks[:]
    controls.set_others(room - GIB, number)
    found["others took it"] = attempt(lambda: dpctl.memory.MemoryUSMDevice(2 * GIB, queue=queue))
    controls.set_others(0, number)
    controls.fail_allocation(2, number)
    found["ordered"] = [attempt(lambda: dpctl.memory.MemoryUSMDevice(3 << 20, queue=queue)) is None for _ in range(3)]
    look()
    return found


def settle():
    for manager in SequentialOrderManager._map.get().values():
        manager.wait()


def main():
    result = {
        "devices": [
            [d.filter_string, d.name.strip(), d.global_mem_size, d.max_mem_alloc_size] for d in dpctl.get_devices()
        ],
        "default": dpctl.select_default_device().filter_string,
        "array": dpnp.ones(3).sycl_device.filter_string,
        "of": {},
    }
    dpmem.start()
    for word in sys.argv[1:]:
        what, _, rest = word.partition(":")
        name, _, number = rest.partition("=")
        device, of = dpctl.SyclDevice(name), result["of"].setdefault(name, {})
        if what == "compute":
            of |= {"wrong": wrong_results(device), "random": random_is_right(device)}
        else:
            of |= memory(device, int(number))
    print(json.dumps(result))


assert "SIMULATED_LIBRARY" in os.environ
main()
