"""Arrays and memory objects on two cards, one of which is the default: each is counted on its own card."""

import sys

import dpctl
import dpctl.memory
import dpnp
import simulated_controls as controls
from known_truth import expect, settle

import dpmem

names = sys.argv[1:3]
first, second = (dpctl.SyclDevice(name) for name in names)
queue = dpctl.SyclQueue(second)
dpmem.start()
expect("nothing yet", [dpmem.memory_allocated(name) for name in names], [0, 0])

block = dpctl.memory.MemoryUSMDevice(3_000_000, queue=queue)
expect("a block on the second", [dpmem.memory_allocated(name) for name in names], [0, 3_000_000])
shared = dpctl.memory.MemoryUSMShared(111_000, queue=queue)
host = dpctl.memory.MemoryUSMHost(222_000, queue=queue)
expect("shared is the second's", dpmem.memory_stats(second)["allocated_bytes.shared.current"], 111_000)
hosts = {row["device"] for row in dpmem.memory_snapshot() if row["kind"] == "host"}
expect("host memory of a context of both is of neither", hosts, {None})

x, y = dpnp.ones(100_000, dtype="f8", device=first), dpnp.ones(200_000, dtype="f8", device=second)
settle()
expect("arrays", [dpmem.memory_allocated(name) for name in names], [800_000, 4_711_000])
expect("as the devices count", [controls.used(0), controls.used(1)], [800_000, 4_711_000])

copied = dpnp.array(x, device=second, copy=True)
seen = x.to_device(second)
settle()
expect("a copy is on the second, a view is not", [dpmem.memory_allocated(name) for name in names], [800_000, 5_511_000])
expect("an array with a queue of the second", dpmem.where(seen).device, names[1])
notes = [f"its memory is {names[0]}'s: every access crosses from one device to the other"]
expect("whose memory is the first's", dpmem.where(seen).notes, notes)
expect("and no other's", [dpmem.where(array).notes for array in (x, y, copied)], [[], [], []])

expect("live on the first", [(row.bytes, len(row.holders)) for row in dpmem.live(first)], [(800_000, 2)])
sizes = [111_000, 800_000, 1_600_000, 3_000_000]
expect("live on the second", sorted(row.bytes for row in dpmem.live(names[1])), sizes)
rows = dpmem.memory_snapshot(second)
expect("snapshot of the second", sorted(row["bytes"] for row in rows if row["kind"] != "host"), sizes)

dpmem.reset_peak_memory_stats(second)
made = y * 2
settle()
inside = controls.used(1)
del made
settle()
expect("peak of the second", dpmem.max_memory_allocated(second) >= inside, True)
expect("peak of the first", dpmem.max_memory_allocated(first), 800_000)
expect("in use again", dpmem.memory_allocated(second), 5_511_000)
with dpmem.track("both") as region:
    one, two = dpnp.zeros(1000, device=first), dpnp.zeros(3000, device=second)
expect("a region over both", (region.allocated_bytes, region.leaked_bytes), (32_000, 32_000))

if names[0].startswith("level_zero"):
    controls.set_others(5 << 30, 1)
    expect("free", [dpmem.mem_get_info(name).free for name in names], [controls.free(0), controls.free(1)])
else:
    expect("free", [dpmem.mem_get_info(name).free for name in names], [None, None])
expect("of", [dpmem.mem_get_info(name).total for name in names], [64 << 30, 64 << 30])
