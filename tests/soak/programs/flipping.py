"""Starts and stops recording over and over while threads allocate, write, read back and free.

Prints what happened as JSON, once it has freed everything.
"""

import json
import sys
import threading
from pathlib import Path

import dpctl
import dpctl.memory

import dpmem

FLIPS = int(sys.argv[1])
WARM_UP = FLIPS // 4
SIZES = (100, 4096, 70_000, 1_000_000)

queue = dpctl.SyclQueue()
device = queue.sycl_device.filter_string
ended = threading.Event()
totals = {"blocks": 0, "wrong": 0}
adding = threading.Lock()


def allocate(number):
    """Every block holds a pattern of its own; a call lost or repeated would mix blocks up, or leave them behind."""
    kinds = (dpctl.memory.MemoryUSMDevice, dpctl.memory.MemoryUSMShared, dpctl.memory.MemoryUSMHost)
    blocks = wrong = 0
    while not ended.is_set():
        held = []
        for n, size in enumerate(SIZES):
            block = kinds[(number + n) % 3](size, queue=queue)
            pattern = bytes((number * 50 + blocks % 50,)) * size
            block.copy_from_host(pattern)
            held.append((block, pattern))
            blocks += 1
        wrong += sum(bytes(block.copy_to_host()) != pattern for block, pattern in held)
    with adding:
        totals["blocks"] += blocks
        totals["wrong"] += wrong


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def sane(stats):
    """Whether the counters can be those of a ledger."""
    for kind in ("all", "device", "shared", "host"):
        for group in ("allocated_bytes", "allocation"):
            now, peak, made, freed = (
                stats[f"{group}.{kind}.{what}"] for what in ("current", "peak", "allocated", "freed")
            )
            if not 0 <= now <= peak <= 100_000_000 or made < 0 or freed < 0:
                return False
    return True


def main():
    kept = dpctl.memory.MemoryUSMDevice(4096, queue=queue)
    threads = [threading.Thread(target=allocate, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    recorded = insane = 0
    settled = None
    for flip in range(FLIPS):
        dpmem.start(stack_depth=(0, 4, 16)[flip % 3])
        for _ in range(flip % 7):
            threading.Event().wait(0.001)
        while_on = dpmem.memory_stats(device)
        dpmem.stop()
        stats = dpmem.memory_stats(device)
        recorded += stats["allocation.all.allocated"] + stats["allocation.host.allocated"]
        insane += not (sane(stats) and sane(while_on))
        if flip == WARM_UP:
            settled = resident()
    ended.set()
    for thread in threads:
        thread.join()
    growth = resident() - settled
    # quiet now: what is recorded must be exact
    dpmem.start()
    blocks = [dpctl.memory.MemoryUSMDevice(1000, queue=queue) for _ in range(50)]
    del blocks[:20]
    exact = dpmem.memory_stats(device)
    dpmem.stop()
    found = {
        **totals,
        "flips": FLIPS,
        "recorded": recorded,
        "insane": insane,
        "growth_bytes": growth,
        "last": [
            exact["allocation.device.current"],
            exact["allocation.device.allocated"],
            exact["allocation.device.freed"],
            exact["allocated_bytes.device.current"],
        ],
        "kept": kept.nbytes,
    }
    kept = blocks = None
    print(json.dumps(found))


main()
