"""The pool serves a program, gives everything back, and what is in flight is not handed out."""

from pathlib import Path

import pytest
from pooling import program, run, run_plainly

LOOP = """
    import dpnp
    a, b = dpnp.arange(100_000), dpnp.ones(100_000)
    for _ in range(100):
        c = a + b
    print(float(c.sum()))
"""


def test_a_loop_is_served_from_the_cache_and_the_ledger_counts_what_was_asked(tmp_path):
    without, ran = run(tmp_path, LOOP), run(tmp_path, LOOP, "--pool")
    assert (ran.exit_code, ran.stdout) == (0, without.stdout), ran.stderr
    pool = ran.report["pool"]
    assert without.report["pool"] is None
    assert pool["hits"] > 150
    assert pool["misses"] < 60
    assert pool["limit_bytes"] is None
    assert pool["rescues"] == 0
    # A block that another thread frees at this moment is in use for the ledger no more, and not in the cache yet.
    assert pool["peak_reserved_bytes"] <= 1.25 * (ran.report["peak"]["bytes"] + 800_000)
    rows = [
        {row["kind"]: (row["alloc_count"], row["allocated_bytes"], row["current_bytes"]) for row in r["usm"]}
        for r in (without.report, ran.report)
    ]
    assert rows[0] == rows[1]
    assert ran.report["recording"]["complete"]


def test_a_queue_that_has_fallen_quiet_keeps_nothing_from_being_used_again(tmp_path):
    source = """
        import dpctl, dpctl.utils, dpnp, dpmem
        a, other = dpnp.arange(12_800), dpctl.SyclQueue()
        assert other.sycl_context == a.sycl_queue.sycl_context and other != a.sycl_queue
        once = dpnp.full(10, 3, sycl_queue=other)
        dpctl.utils.SequentialOrderManager[other].wait()
        for _ in range(400):
            b = a + 1
            dpctl.utils.SequentialOrderManager[a.sycl_queue].wait()
        print(int(b[0]))
    """
    ran = run(tmp_path, source, "--pool")
    assert (ran.exit_code, ran.stdout) == (0, "1\n"), ran.stderr
    assert ran.report["pool"]["peak_reserved_bytes"] < 7 * 102_400, ran.report["pool"]


def test_memory_of_each_kind_is_served_from_the_cache(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        from dpmem import _native
        for kind in (m.MemoryUSMDevice, m.MemoryUSMShared, m.MemoryUSMHost):
            before = _native.pool_reading(None)["hits"]
            for _ in range(3):
                block = kind(3 << 20)
                block.copy_from_host(b"12345678")
                del block
            print(_native.pool_reading(None)["hits"] - before)
        dpmem.set_memory_limit(8 << 20)
        kept = [m.MemoryUSMDevice(3 << 20)]
        try:
            kept += [m.MemoryUSMShared(3 << 20) for _ in range(2)]
        except dpmem.OutOfDeviceMemory as error:
            print(error.kind)
    """
    ran = run(tmp_path, source, "--pool")
    assert (ran.exit_code, ran.stdout) == (0, "2\n2\n2\nshared\n"), ran.stderr


def test_the_variables_stand_for_the_options_of_a_run_only(tmp_path):
    ran = run(tmp_path, LOOP, DPMEM_POOL="1", DPMEM_LIMIT="50%")
    device = ran.report["devices"][0]
    assert ran.report["pool"]["hits"] > 150
    assert ran.report["pool"]["limit_bytes"] == device["capacity_bytes"] // 2
    assert run(tmp_path, LOOP, "--limit", "1GB", DPMEM_LIMIT="2GB").report["pool"]["limit_bytes"] == 10**9
    for variables, expected in (({"DPMEM_POOL": "yes"}, "DPMEM_POOL"), ({"DPMEM_LIMIT": "much"}, "DPMEM_LIMIT")):
        refused = run(tmp_path, LOOP, **variables)
        assert refused.exit_code == 2
        assert expected in refused.stderr
        assert not refused.stdout


def test_the_api_switches_it_on_and_off(tmp_path):
    source = """
        import dpnp, dpmem
        before = dpnp.ones(1_000_000)
        dpmem.enable_pool(limit="1GiB")
        reserved = dpmem.memory_reserved()
        assert reserved == dpmem.memory_allocated() >= 8_000_000, reserved
        for _ in range(10):
            c = before + before
        dpmem.synchronize()
        stats = dpmem.memory_stats()
        assert stats["pool.hits"] > 5, stats
        assert dpmem.memory_reserved() == dpmem.memory_allocated() + stats["pool.cached_bytes"] + 388_608
        assert dpmem.max_memory_reserved() >= dpmem.memory_reserved()
        assert "pool:" in dpmem.memory_summary()
        assert dpmem.empty_cache() == stats["pool.cached_bytes"]
        assert dpmem.memory_stats()["pool.cached_bytes"] == 0
        assert dpmem.set_memory_limit("2GB") == 1 << 30
        assert dpmem.set_memory_limit(None) == 2 * 10**9
        dpmem.set_per_process_memory_fraction(0.5)
        d = c + c
        del d
        dpmem.disable_pool()
        dpmem.synchronize()
        assert dpmem.memory_reserved() == dpmem.memory_allocated() + 388_608
        del c
        dpmem.synchronize()
        assert dpmem.memory_reserved() == dpmem.memory_allocated() == 8_000_000
        assert dpmem.set_memory_limit(None) is None
        dpmem.enable_pool()
        dpmem.stop()
        assert not dpmem.is_tracking()
        e = before + before
        del e
        dpmem.disable_pool()
        assert float(before.sum()) == 1_000_000
        print("right")
    """
    ran = run_plainly(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, "right\n"), ran.stderr


@pytest.mark.parametrize(
    "call",
    [
        "enable_pool('x')",
        "set_memory_limit(-1)",
        "set_per_process_memory_fraction(0)",
        "set_per_process_memory_fraction(float('nan'))",
        "set_per_process_memory_fraction('50%')",
        "set_per_process_memory_fraction(True)",
    ],
)
def test_what_is_no_size_is_refused(call):
    import dpmem

    with pytest.raises(ValueError, match="expected"):
        eval(f"dpmem.{call}", {"dpmem": dpmem})
    assert not dpmem.is_tracking()


def test_numbers_of_numpy_are_sizes_and_a_share_of_nothing_is_none(tmp_path):
    source = """
        import numpy, dpnp, dpmem
        capacity = dpmem.mem_get_info().total
        dpmem.set_memory_limit(numpy.int64(1 << 30))
        dpmem.set_per_process_memory_fraction(numpy.float32(0.5))
        print(dpmem.set_memory_limit(None) == capacity // 2)
        for call in (dpmem.set_memory_limit, dpmem.set_per_process_memory_fraction):
            try:
                call(1e-13 if call is dpmem.set_per_process_memory_fraction else "0.0000000000001%")
            except ValueError as error:
                print(error)
        print(dpmem.set_memory_limit(None))
    """
    ran = run_plainly(tmp_path, source)
    right, fraction, share, left = ran.stdout.splitlines()
    assert (right, left) == ("True", "None"), ran.stderr
    for text in (fraction, share):
        assert text.startswith("expected a share of the capacity of at least one byte, got 1e-1")


@pytest.mark.parametrize("limit", [True, 1.5, b"1GiB"])
def test_what_is_no_size_at_all_is_refused(limit):
    import dpmem

    for call in (dpmem.set_memory_limit, dpmem.enable_pool):
        with pytest.raises(TypeError, match="expected a size as a number of bytes"):
            call(limit)
    assert not dpmem.is_tracking()
    with pytest.raises(TypeError, match="expected a function to call, got 3"):
        dpmem.on_out_of_memory(3)


def test_a_share_of_an_unknown_capacity_is_refused(tmp_path):
    source = """
        import dpnp, dpmem
        from dpmem import _native
        dpnp.ones(3)
        _native.device_room = lambda device: (None, None)
        try:
            dpmem.set_memory_limit("50%")
        except RuntimeError as error:
            print(error)
    """
    ran = run_plainly(tmp_path, source)
    assert ran.stdout == "the capacity of `opencl:cpu:0` is unknown: give the limit in bytes\n", ran.stderr


@pytest.mark.parametrize("how", [[], ["in_order"], ["queue_left"]], ids=["out_of_order", "in_order", "queue_left"])
def test_memory_in_flight_stays_what_it_is(tmp_path, how):
    ran = run(tmp_path, program("freed_in_flight.py", 12, *how), "--pool", DPMEM_TEST_POISON="1")
    assert ran.stdout.startswith("wrong 0 of 12"), (ran.stdout, ran.stderr)
    assert ran.report["pool"]["hits"] > 0


def test_random_programs_compute_the_same(tmp_path):
    # What each thread computes doesn't depend on the others, so the reference needs one at a time only.
    plain = run_plainly(tmp_path, program("random_operations.py", 4, 1, 30))
    source = program("random_operations.py", 4, 4, 30)
    pooled = run(tmp_path, source, "--pool", DPMEM_TEST_POISON="1", timeout=60)
    assert plain.exit_code == pooled.exit_code == 0, plain.stderr + pooled.stderr
    assert pooled.stdout == plain.stdout
    assert pooled.report["pool"]["hits"] > 200
    assert pooled.report["recording"]["complete"]


@pytest.mark.parametrize("order", ["", "property='in_order'"], ids=["out_of_order", "in_order"])
def test_work_of_onemkl_is_covered(tmp_path, order):
    source = f"""
        import dpctl, dpnp
        x = dpnp.ones((300, 300), sycl_queue=dpctl.SyclQueue({order}))
        kept = [(x * n) @ x for n in range(40)]
        print([float(k[0, 0]) for k in kept])
    """
    plain, pooled = run_plainly(tmp_path, source), run(tmp_path, source, "--pool", DPMEM_TEST_POISON="1")
    assert (pooled.exit_code, pooled.stdout) == (0, plain.stdout), pooled.stderr


def test_a_host_that_runs_ahead_does_not_blow_the_pool_up(tmp_path):
    source = """
        import dpctl.memory, dpnp
        x = dpnp.ones(4_000_000)
        out = dpnp.empty_like(x)
        for _ in range(60):
            dpnp.floor_divide(x, 0.1, out=out)
            block = dpctl.memory.MemoryUSMDevice(32_000_000, queue=x.sycl_queue)
            del block
        x.sycl_queue.wait()
    """
    ran = run(tmp_path, source, "--pool")
    assert ran.exit_code == 0, ran.stderr
    assert ran.report["pool"]["peak_reserved_bytes"] <= 1.25 * ran.report["peak"]["bytes"]


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="this kernel has no large pages")
def test_large_blocks_of_a_cpu_are_made_of_large_pages(tmp_path):
    source = """
        import re, dpctl.memory as m, dpnp
        for kind in (m.MemoryUSMDevice, m.MemoryUSMShared, m.MemoryUSMHost):
            block = kind(64 << 20)
            text = open("/proc/self/smaps").read()
            flags = ""
            for part in re.split(r"\\n(?=[0-9a-f]+-[0-9a-f]+ )", text):
                first, last = (int(each, 16) for each in part.split(None, 1)[0].split("-"))
                if first <= block._pointer + (32 << 20) < last:
                    flags = re.search("VmFlags:(.*)", part)[1].split()
            print("hg" in flags)
    """
    assert run(tmp_path, source, "--pool").stdout == "True\n" * 3
    assert run(tmp_path, source, "--limit", "1GiB").stdout == "False\n" * 3


def test_contexts_come_and_go(tmp_path):
    source = """
        import dpctl, dpctl.memory as m
        device = dpctl.SyclDevice()
        for _ in range(50):
            queue = dpctl.SyclQueue(dpctl.SyclContext(device), device)
            blocks = [m.MemoryUSMDevice(100_000, queue=queue) for _ in range(3)]
            del blocks, queue
        import dpmem
        print(dpmem.memory_stats()["pool.cached_bytes"])
    """
    ran = run(tmp_path, source, "--pool")
    assert ran.exit_code == 0, ran.stderr
    assert int(ran.stdout) < 5 * 3 * 120_000, "what is cached of a context goes with it"


def test_a_fault_of_the_pool_is_not_the_programs(tmp_path):
    source = """
        import dpnp
        from dpmem import _native
        a = dpnp.ones(10_000)
        _native.hook_inject("panic", 20)
        for _ in range(50):
            a = a + 1
        print(float(a[0]))
    """
    ran = run(tmp_path, source, "--pool")
    assert (ran.exit_code, ran.stdout) == (0, "51.0\n"), ran.stderr
    assert not ran.report["recording"]["complete"]
    assert "panicked" not in ran.stderr


def test_after_a_fault_nothing_more_is_kept(tmp_path):
    source = """
        import dpctl.memory as m
        from dpmem import _native
        blocks = [m.MemoryUSMDevice(2_000_000) for _ in range(4)]
        for after in range(1, 9):
            _native.hook_inject("panic", after)
            m.MemoryUSMDevice(100)
            if not _native.pool_status()[0]:
                break
        before = _native.pool_reading(None)
        blocks.clear()
        after = _native.pool_reading(None)
        assert before["in_use_bytes"] >= 8_000_000 > after["reserved_bytes"], (before, after)
        assert after["cached_bytes"] == before["cached_bytes"], (before, after)
        print("right")
    """
    ran = run(tmp_path, source, "--pool")
    assert (ran.exit_code, ran.stdout) == (0, "right\n"), ran.stderr


def test_nothing_is_kept_once_the_runtime_takes_no_markers(tmp_path):
    source = """
        import dpnp, dpmem
        from dpmem import _native
        a = dpnp.ones(200_000)
        for n in range(60):
            if n == 30:
                assert _native.pool_status() == (True, True, False)
                _native.hook_inject("no-markers")
            a = dpnp.floor_divide(a, 0.1) * 0.1
        dpmem.synchronize()
        reading = _native.pool_reading(None)
        assert _native.pool_status() == (True, False, True)
        assert reading["cached_bytes"] == 0 < reading["hits"], reading
        try:
            dpmem.enable_pool()
        except RuntimeError as error:
            print("refused", round(float(a[0])))
    """
    plain = "import dpnp\na = dpnp.ones(200_000)\nfor n in range(60): a = dpnp.floor_divide(a, 0.1) * 0.1\n"
    plain += 'print("refused", round(float(a[0])))'
    ran = run(tmp_path, source, "--pool")
    assert (ran.exit_code, ran.stdout) == (0, run_plainly(tmp_path, plain).stdout), ran.stderr


def test_a_forked_child_leaves_the_pool_alone(tmp_path):
    source = """
        import os, dpnp, dpctl.memory as m, dpmem
        a = dpnp.ones(10_000)
        b = a + a
        block = m.MemoryUSMDevice(100_000)
        del b
        child = os.fork()
        if child == 0:
            # Nothing of the pool may hang or fail here, and a block goes as if it went back.
            print(dpmem.empty_cache(), dpmem.last_out_of_memory(), flush=True)
            for refused in (dpmem.enable_pool, lambda: dpmem.set_memory_limit("1GB"), dpmem.memory_reserved):
                try:
                    refused()
                except RuntimeError as error:
                    print("forked" in str(error), flush=True)
            dpmem.disable_pool()
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float((a + a)[0]))
    """
    ran = run(tmp_path, source, "--pool")
    assert (ran.exit_code, ran.stdout) == (0, "0 None\nTrue\nTrue\nTrue\n7 2.0\n"), ran.stderr


def test_nothing_is_kept_where_launches_go_unseen(tmp_path):
    source = """
        import dpmem._native as n; n.hook_inject("dead-table")
        import dpctl.memory as m
        for _ in range(40):
            m.MemoryUSMDevice(1 << 20)
        print("watching" in n.hook_status()["mechanism"], n.pool_reading(None)["hits"], n.pool_status()[1:])
    """
    ran = run(tmp_path, source, "--pool")
    assert (ran.exit_code, ran.stdout) == (0, "True 0 (False, True)\n"), ran.stderr
    assert "doesn't tell when freed memory may be reused" in ran.stderr
