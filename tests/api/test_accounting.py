"""Accounting and tracking from Python, on the real CPU device, in this process."""

import asyncio
import gc
import os
import subprocess
import sys
import threading

import dpctl
import dpctl.memory as usm
import dpnp
import pytest

import dpmem

MIB = 1 << 20


@pytest.fixture(autouse=True)
def tracking():
    dpmem.stop()
    gc.collect()
    dpmem.start()
    yield
    dpmem.stop()


def stats(**wanted):
    found = dpmem.memory_stats()
    return {key: found[key] for key in wanted} == wanted


def test_allocated_follows_the_arrays():
    before = dpmem.memory_allocated()
    x = usm.MemoryUSMDevice(3 * MIB)
    y = usm.MemoryUSMShared(MIB)
    assert dpmem.memory_allocated() - before == 4 * MIB
    assert dpmem.memory_reserved() == dpmem.memory_allocated()
    del x
    assert dpmem.memory_allocated() - before == MIB
    assert dpmem.max_memory_allocated() - before == 4 * MIB
    assert dpmem.max_memory_reserved() == dpmem.max_memory_allocated()
    del y
    assert dpmem.memory_allocated() == before


def test_what_a_pool_reserved_before_is_not_of_this_recording():
    dpmem.enable_pool()
    usm.MemoryUSMDevice(64 * MIB)
    dpmem.disable_pool()
    assert dpmem.max_memory_reserved() >= 64 * MIB
    dpmem.stop()
    dpmem.start()
    assert dpmem.max_memory_reserved() == dpmem.max_memory_allocated() < 64 * MIB


def test_host_memory_is_told_apart():
    before = dpmem.memory_stats()
    x = usm.MemoryUSMHost(MIB)
    after = dpmem.memory_stats()
    assert after["allocated_bytes.host.current"] - before["allocated_bytes.host.current"] == MIB
    assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
    assert after["allocation.host.allocated"] - before["allocation.host.allocated"] == 1
    del x


def test_stats_keys_are_sorted_and_complete():
    keys = list(dpmem.memory_stats())
    assert keys == sorted(keys)
    for key in (
        "allocated_bytes.all.current",
        "allocation.shared.freed",
        "reserved_bytes.all.peak",
        "num_ooms",
    ):
        assert key in keys


def test_peaks_can_be_reset():
    x = usm.MemoryUSMDevice(8 * MIB)
    del x
    dpmem.reset_peak_memory_stats()
    assert dpmem.max_memory_allocated() == dpmem.memory_allocated()
    usm.MemoryUSMDevice(MIB)
    assert dpmem.max_memory_allocated() == dpmem.memory_allocated() + MIB


def test_totals_can_be_reset():
    usm.MemoryUSMDevice(MIB)
    dpmem.reset_accumulated_memory_stats()
    assert stats(**{"allocated_bytes.device.allocated": 0, "allocation.device.freed": 0, "num_ooms": 0})
    usm.MemoryUSMDevice(MIB)
    assert stats(**{"allocated_bytes.device.allocated": MIB, "allocation.device.freed": 1})


def test_refused_allocations_are_counted():
    too_much = dpctl.SyclDevice().max_mem_alloc_size + (1 << 40)
    with pytest.raises(Exception, match="allocation"):
        usm.MemoryUSMDevice(too_much)
    assert dpmem.memory_stats()["num_ooms"] == 1


@pytest.mark.parametrize(
    "device",
    [
        lambda: None,
        lambda: "cpu",
        lambda: "opencl:cpu:0",
        dpctl.SyclDevice,
        dpctl.SyclQueue,
        lambda: dpnp.ones(3).device,
        lambda: dpctl.SyclDevice().create_sub_devices(partition=1)[0],
    ],
    ids=["none", "type", "filter", "device", "queue", "dpnp device", "sub-device"],
)
def test_a_device_can_be_named_in_many_ways(device):
    x = usm.MemoryUSMDevice(MIB)
    assert dpmem.memory_allocated(device()) >= MIB
    del x


def test_what_is_no_device_is_refused():
    with pytest.raises(ValueError, match="devices here: opencl:cpu:0"):
        dpmem.memory_allocated("level_zero:gpu:7")
    with pytest.raises(TypeError, match="expected a device"):
        dpmem.memory_allocated(3.5)
    with pytest.raises(TypeError, match="got ndarray"):
        dpmem.memory_allocated(dpnp.asnumpy(dpnp.ones(2)))


def test_snapshot_names_the_line():
    x = usm.MemoryUSMDevice(12345)
    block = next(block for block in dpmem.memory_snapshot() if block["bytes"] == 12345)
    assert (block["address"], block["kind"], block["device"]) == (x._pointer, "device", "opencl:cpu:0")
    user = next(frame for frame in block["stack"] if not frame["library"])
    assert user["file"] == __file__
    assert user["function"] == "test_snapshot_names_the_line" or sys.version_info < (3, 11)
    assert dpmem.memory_snapshot("opencl:cpu:0") == dpmem.memory_snapshot()


def test_summary_shows_the_numbers():
    x = usm.MemoryUSMDevice(5 * MIB)
    text = dpmem.memory_summary()
    assert "USM of opencl:cpu:0" in text
    assert "host" in text
    assert "host" not in dpmem.memory_summary(abbreviated=True)
    assert len({len(line) for line in text.splitlines()[1:4]}) == 1
    del x


def test_late_start_finds_what_is_there():
    dpmem.stop()
    kept = [usm.MemoryUSMDevice(MIB) for _ in range(3)]
    view = usm.MemoryUSMDevice(kept[0])
    array = dpnp.ones((4, MIB // 8))[1:2]
    before = dpmem.is_tracking()
    dpmem.start()
    blocks = [b for b in dpmem.memory_snapshot() if b["bytes"] >= MIB]
    assert (before, dpmem.is_tracking()) == (False, True)
    assert sorted(b["bytes"] for b in blocks) == [MIB, MIB, MIB, 4 * MIB], "blocks, not views"
    assert {b["origin"] for b in blocks} == {"before start"}
    assert dpmem.memory_stats()["allocation.device.allocated"] == 0
    now = dpmem.memory_allocated()
    del kept[1]
    assert now - dpmem.memory_allocated() == MIB
    del view, array


def test_start_is_idempotent_and_checks_its_argument():
    x = usm.MemoryUSMDevice(MIB)
    dpmem.start()
    assert dpmem.memory_stats()["allocation.device.allocated"] == 1, "the recording went on"
    for wrong in (-1, 129, "deep", 1.5):
        with pytest.raises(ValueError, match="stack_depth"):
            dpmem.start(stack_depth=wrong)
    del x


def test_after_stop_the_numbers_stand():
    x = usm.MemoryUSMDevice(MIB)
    dpmem.stop()
    held = dpmem.memory_allocated()
    del x
    assert dpmem.memory_allocated() == held


def test_without_stacks():
    dpmem.stop()
    dpmem.start(stack_depth=0)
    x = usm.MemoryUSMDevice(MIB)
    block = next(b for b in dpmem.memory_snapshot() if b["bytes"] == MIB and b["origin"] != "before start")
    assert (block["stack"], block["origin"]) == ([], "no stacks recorded")
    del x


def test_track_measures_its_part():
    outside = usm.MemoryUSMDevice(MIB)
    current = dpmem.memory_allocated() + dpmem.memory_stats()["allocated_bytes.host.current"]
    with dpmem.track("part") as t:
        kept = usm.MemoryUSMDevice(2 * MIB)
        gone = usm.MemoryUSMDevice(4 * MIB)
        del gone, outside
    assert t.peak_bytes == current + 6 * MIB
    assert t.allocated_bytes == 6 * MIB
    assert t.leaked_bytes == 2 * MIB
    assert t.alloc_count == 2
    assert "test_accounting.py" in t.report()
    assert "part" in repr(t)
    assert "<pre>" in t._repr_html_()
    del kept


def test_tracks_nest_and_overlap():
    with dpmem.track("outer") as outer:
        a = usm.MemoryUSMDevice(8 * MIB)
        del a
        with dpmem.track("inner") as inner:
            b = usm.MemoryUSMDevice(MIB)
        c = usm.MemoryUSMDevice(MIB)
    assert outer.peak_bytes - inner.peak_bytes == 7 * MIB
    assert (outer.leaked_bytes, inner.leaked_bytes) == (2 * MIB, MIB)
    del b, c


def test_track_decorates():
    @dpmem.track()
    def work(n):
        return usm.MemoryUSMDevice(n)

    x = work(MIB)
    assert work.__name__ == "work"
    assert work.last.leaked_bytes == MIB
    assert "work" in work.last.report()
    del x


def test_track_passes_exceptions_and_still_counts():
    t = dpmem.track("fails")

    def fail():
        with t:
            usm.MemoryUSMDevice(MIB)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (t.allocated_bytes, t.leaked_bytes) == (MIB, 0)


def test_a_region_is_used_once_at_a_time_and_has_a_name():
    with dpmem.track("once") as t, pytest.raises(RuntimeError, match="region `once` is open already"):
        t.__enter__()
    with pytest.raises(TypeError, match=r"write @dpmem\.track\(\)"):
        dpmem.track(_steps)


def test_track_starts_recording_for_its_duration():
    dpmem.stop()
    with dpmem.track("alone") as t:
        assert dpmem.is_tracking()
        usm.MemoryUSMDevice(MIB)
    assert not dpmem.is_tracking()
    assert t.allocated_bytes == MIB


def test_overlapping_tracks_share_the_recording_that_the_first_started():
    dpmem.stop()
    first, second = dpmem.track("first"), dpmem.track("second")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    x = usm.MemoryUSMDevice(MIB)
    second.__exit__(None, None, None)
    assert (first.allocated_bytes, second.allocated_bytes) == (0, MIB)
    assert not dpmem.is_tracking()
    del x


def test_a_track_whose_recording_ended_says_nothing():
    with dpmem.track("cut short") as t:
        dpmem.stop()
        dpmem.start()
        usm.MemoryUSMDevice(MIB)
    assert (t.peak_bytes, t.allocated_bytes, t.leaked_bytes) == (None, None, None)
    assert "nothing is known" in t.report()


def test_coroutines_are_tracked_and_generators_refused():
    @dpmem.track()
    async def work():
        return usm.MemoryUSMDevice(MIB)

    x = asyncio.run(work())
    assert work.last.leaked_bytes == MIB
    with pytest.raises(TypeError, match="generator"):
        dpmem.track()(_steps)
    del x


def _steps():
    yield 1


def test_a_recording_says_what_it_lacks():
    assert "after the program had begun" in dpmem.recording_gap()


def test_track_waits_for_queued_work():
    x = dpnp.ones((1024, 1024), dtype="f4")
    with dpmem.track("queued") as t:
        for _ in range(3):
            x @ x
    assert t.leaked_bytes < MIB, "what only waited for a kernel is no leak"


def test_more_regions_than_places_lose_only_their_peak():
    regions = [dpmem.track(str(n)) for n in range(66)]
    for region in regions:
        region.__enter__()
    usm.MemoryUSMDevice(MIB)
    for region in reversed(regions):
        region.__exit__(None, None, None)
    assert [region.peak_bytes is None for region in regions] == [False] * 64 + [True] * 2
    assert all(region.allocated_bytes == MIB for region in regions)


def test_threads_are_all_counted():
    def work():
        for _ in range(200):
            usm.MemoryUSMDevice(1000, queue=queue)

    queue = dpctl.SyclQueue()
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert dpmem.memory_stats()["allocation.device.allocated"] == 800


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, timeout=60)


def test_import_has_no_side_effect():
    done = run_python(
        "import sys, signal, threading; import dpmem; "
        "print([n for n in ('dpctl', 'dpnp', 'numpy') if n in sys.modules], dpmem.is_tracking(), "
        "signal.getsignal(signal.SIGTERM), threading.active_count(), len(sys.meta_path))"
    )
    plain = run_python("import sys; print(len(sys.meta_path))")
    assert done.stdout == f"[] False 0 1 {plain.stdout}", done.stderr


def test_numbers_need_a_recording():
    done = run_python("import dpmem; dpmem.memory_allocated()")
    assert "call dpmem.start() first" in done.stderr
    assert run_python("import dpmem; dpmem.stop(); dpmem.start(); print(dpmem.memory_allocated())").stdout == "0\n"


def test_statements_that_are_compiled_one_by_one_have_their_own_lines():
    # As a notebook runs a cell: the next code object may lie where the last one did.
    kept = []
    lines = [line for line in (1, 2, 3, 9, 40, 41, 300, 5000) for _ in range(5)]
    for line in lines:
        statement = compile("\n" * (line - 1) + "kept.append(usm.MemoryUSMDevice(16))", "a cell", "exec")
        exec(statement, {"kept": kept, "usm": usm})
        del statement
    addresses = {block["address"]: block["stack"] for block in dpmem.memory_snapshot()}
    stacks = [next(frame for frame in addresses[x._pointer] if frame["file"] == "a cell") for x in kept]
    assert [frame["line"] for frame in stacks] == lines
