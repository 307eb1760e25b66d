"""Limits: what is done before an allocation fails, how it fails, and that a program survives it."""

import ast

import pytest
from pooling import program, run, run_plainly

MIB = 1 << 20


def rescued(ran):
    """How shortages ended, by what helped."""
    return {name: count for name, count in ran.report["pool"]["rescued_by"].items() if count}


@pytest.mark.parametrize("pool", [[], ["--pool"]], ids=["limit", "pool"])
def test_results_that_pile_up_in_flight_wait_instead_of_failing(tmp_path, pool):
    source = """
        import dpnp
        x = dpnp.ones((700, 700))
        for _ in range(20):
            x @ x.T
        print("done")
    """
    ran = run(tmp_path, source, "--limit", str(4 * 700 * 700 * 8 + 100_000), *pool)
    assert (ran.exit_code, ran.stdout) == (0, "done\n"), ran.stderr
    assert "wait" in rescued(ran)
    assert ran.report["pool"]["peak_reserved_bytes"] <= 4 * 700 * 700 * 8 + 100_000
    # What has come to rest is used again rather than given back and taken anew.
    assert not pool or ran.report["pool"]["hits"] >= 10


def test_idle_blocks_of_other_sizes_make_room(tmp_path):
    source = """
        import dpctl.memory as m
        for n in range(1, 6):
            block = m.MemoryUSMDevice(n << 20)
            del block
        m.MemoryUSMDevice(15 << 20)
        print("done")
    """
    ran = run(tmp_path, source, "--pool", "--limit", "16MiB")
    assert (ran.exit_code, ran.stdout) == (0, "done\n"), ran.stderr
    assert ran.report["pool"]["trims"] > 0


def test_the_collector_frees_what_a_cycle_holds(tmp_path):
    source = """
        import gc, dpctl.memory as m
        gc.disable()
        for _ in range(10):
            cycle = []
            cycle.append((cycle, m.MemoryUSMDevice(4 << 20)))
            del cycle
        print("done")
    """
    ran = run(tmp_path, source, "--limit", "20MiB")
    assert (ran.exit_code, ran.stdout) == (0, "done\n"), ran.stderr
    assert rescued(ran) == {"collect": ran.report["pool"]["rescues"]}


def test_callbacks_may_free_something_and_one_that_raises_does_no_harm(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        cache = [m.MemoryUSMDevice(8 << 20) for _ in range(2)]
        @dpmem.on_out_of_memory
        def broken(shortage):
            raise ValueError("broken callback")
        @dpmem.on_out_of_memory
        def give(shortage):
            print(shortage.requested_bytes, shortage.kind, shortage.limit_bytes)
            if cache:
                cache.clear()
                return True
        kept = [m.MemoryUSMDevice(8 << 20)]
        try:
            kept.append(m.MemoryUSMDevice(9 << 20))
            kept.append(m.MemoryUSMDevice(9 << 20))
        except dpmem.OutOfDeviceMemory:
            print("caught")
    """
    ran = run(tmp_path, source, "--limit", "24MiB")
    assert ran.exit_code == 0, ran.stderr
    asked = f"{9 * MIB} device {24 * MIB}\n"
    assert ran.stdout == f"{asked}{asked}caught\n"
    assert rescued(ran) == {"callback": 1}
    assert "broken callback" in ran.stderr


def test_both_forms_of_failure_are_explained(tmp_path):
    source = """
        import dpctl.memory as m, dpnp, dpmem
        kept = dpnp.ones(6 << 20, dtype="f4")
        try:
            m.MemoryUSMDevice(16 << 20)
        except m.USMAllocationError as error:
            assert isinstance(error, dpmem.OutOfDeviceMemory) and isinstance(error, MemoryError)
            assert error.requested_bytes == 16 << 20 and error.limit_bytes == 32 << 20, vars(error)
            assert error.device == dpnp.ones(1).sycl_device.filter_string and error.kind == "device"
            assert error.max_alloc_bytes > 0
            assert (error.free_bytes is None) == (error.free_trust == "unknown") and error.free_source, vars(error)
            assert error.holders[0]["bytes"] == 24 << 20 and "__main__.kept" in str(error), error
        else:
            raise SystemExit("expected a failure")
        dpmem.set_memory_limit(dpmem.memory_reserved() + 100)
        dpnp.sum(kept)
    """
    ran = run(tmp_path, source, "--limit", "32MiB")
    assert ran.exit_code == 1
    assert "RuntimeError: Unable to allocate device_memory\n" in ran.stderr
    assert "direct cause" in ran.stderr
    assert "dpmem.OutOfDeviceMemory: out of device memory: asked for" in ran.stderr
    assert "__main__.kept" in ran.stderr


TEMPORARY = """
    import sys, traceback, dpnp, dpmem
    x = dpnp.ones(1 << 20, dtype="f8")
    dpnp.sum(dpnp.ones(4))
    dpmem.set_memory_limit(dpmem.memory_reserved() + 100)
"""


def test_a_temporary_of_dpnps_own_fails_as_ours(tmp_path):
    source = f"""{TEMPORARY}
    for _ in range(3):
        try:
            dpnp.sum(x)
        except RuntimeError as error:
            assert isinstance(error, dpmem.OutOfDeviceMemory) and isinstance(error, MemoryError)
            assert "__main__.x" in str(error) and error.requested_bytes > 100 and error.kind == "device"
            assert type(error.__cause__) is RuntimeError and "Unable to allocate" in str(error.__cause__)
            frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
            assert frames == list(dict.fromkeys(frames)) and not any("/python/dpmem/" in f[0] for f in frames), frames
            frame = sys._getframe()
            assert sys.gettrace() is None and frame.f_trace is None
            print("ours")
    error = dpmem.OutOfDeviceMemory("of my own")
    print(error, error.requested_bytes)
    """
    ran = run(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, "ours\n" * 3 + "of my own None\n"), ran.stderr


def test_where_the_thread_is_traced_the_error_stays_and_is_explained(tmp_path):
    source = f"""{TEMPORARY}
    tracer = lambda *event: None
    sys.settrace(tracer)
    try:
        dpnp.sum(x)
    except RuntimeError as error:
        facts = dpmem.last_out_of_memory()
        assert type(error) is RuntimeError and isinstance(facts, dpmem.OutOfDeviceMemory), facts
        assert facts.requested_bytes > 100
        print("explained", sys.gettrace() is tracer)
    dpnp.sum(x)
    """
    ran = run(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (1, "explained True\n")
    assert "RuntimeError: Unable to allocate device_memory\n" in ran.stderr
    assert "dpmem: out of device memory: asked for" in ran.stderr
    assert "__main__.x" in ran.stderr


# What its pool keeps is as little to be had as what it has in use.
@pytest.mark.parametrize(("option", "end"), [("--no-summary", ""), ("--pool", "; del b")])
def test_other_processes_are_named(tmp_path, option, end):
    source = """
        END, OPTION = PARAMETERS
        import subprocess, sys, dpctl.memory as m, dpmem
        hold = "import dpctl.memory as m; b = m.MemoryUSMDevice(48 << 20)" + END + "; print(flush=True); input()"
        other = subprocess.Popen([sys.executable, "-m", "dpmem", "run", OPTION, "-c", hold], stderr=subprocess.DEVNULL,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        other.stdout.readline()
        try:
            m.MemoryUSMDevice(64 << 20)
        except dpmem.OutOfDeviceMemory as error:
            print([entry["bytes"] for entry in error.other_processes if entry["pid"] == other.pid])
            # Of a long command line the beginning is told.
            print("48 MiB in" in str(error) and f"({sys.executable} -m dpmem"[:50] in str(error))
        other.communicate(b"\\n")
    """
    ran = run(tmp_path, source.replace("PARAMETERS", repr((end, option))), "--limit", "1MiB")
    assert (ran.exit_code, ran.stdout) == (0, f"[{48 << 20}]\nTrue\n"), ran.stderr


def test_a_swallowed_failure_is_in_the_report(tmp_path):
    source = """
        import dpctl.memory as m
        try:
            m.MemoryUSMDevice(64 << 20)
        except Exception:
            pass
    """
    ran = run(tmp_path, source, "--limit", "1MiB", "--fail-on", "DPM503")
    assert ran.exit_code == 1
    finding = next(each for each in ran.report["findings"] if each["code"] == "DPM503")
    assert finding["line"] == 4
    assert finding["evidence"]["requested_bytes"] == 64 * MIB
    assert finding["evidence"]["limit_bytes"] == MIB
    assert "held most" not in finding["message"], "one request alone is too large"


def test_a_swallowed_failure_tells_who_held_most_though_it_is_gone(tmp_path):
    source = """
        import dpctl.memory as m
        def load():
            batches = [m.MemoryUSMDevice(1 << 20) for _ in range(3)]
            try:
                m.MemoryUSMDevice(2 << 20)
            except Exception:
                pass
        load()
    """
    ran = run(tmp_path, source, "--limit", "4MiB")
    (finding,) = [each for each in ran.report["findings"] if each["code"] == "DPM503"]
    assert finding["message"].endswith("load(): batches[…] held most then, 3 MiB"), finding


def test_a_limit_below_what_is_in_use_fails_the_next_allocation_only(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        kept = m.MemoryUSMDevice(8 << 20)
        dpmem.set_memory_limit(1 << 20)
        kept.copy_from_host(b"\\1" * (8 << 20))
        try:
            m.MemoryUSMDevice(100)
        except dpmem.OutOfDeviceMemory:
            print("refused", kept.copy_to_host()[-1])
        host = m.MemoryUSMHost(8 << 20)
        del kept
        m.MemoryUSMDevice(100)
        print("room again")
    """
    ran = run_plainly(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, "refused 1\nroom again\n"), ran.stderr


def test_limits_stay_until_they_are_changed_or_all_goes(tmp_path):
    source = """
        import dpctl, dpnp, dpmem
        from dpmem import _native, _runtime
        dpnp.ones(3)
        _runtime.name_devices()
        name = dpctl.select_default_device().filter_string
        def limit():
            return _native.pool_limit_of(name)
        assert limit() == 2 << 30
        dpmem.enable_pool()
        assert limit() == 2 << 30
        dpmem.enable_pool(limit="1GiB")
        assert limit() == 1 << 30
        dpmem.set_memory_limit("3GiB")
        dpmem.enable_pool(limit="1GiB")
        assert limit() == 3 << 30
        dpmem.set_memory_limit(None)
        dpmem.enable_pool(limit="1GiB")
        assert limit() is None
        dpmem.disable_pool()
        dpmem.enable_pool(limit="1GiB")
        assert limit() == 1 << 30
        print("right")
    """
    ran = run(tmp_path, source, "--limit", "2GiB")
    assert (ran.exit_code, ran.stdout) == (0, "right\n"), ran.stderr


@pytest.mark.parametrize("before", ["", "import dpnp", "import dpctl; queue = dpctl.SyclQueue()"])
@pytest.mark.parametrize("how", ["plainly", "run"])
def test_a_limit_can_be_the_first_thing_that_a_program_does(tmp_path, before, how):
    source = f"""
        import dpmem
        {before}
        print(dpmem.set_memory_limit("100MB"), dpmem.set_memory_limit("16MiB", "cpu"))
        import dpctl.memory as m
        kept = m.MemoryUSMDevice(10 << 20)
        try:
            m.MemoryUSMDevice(10 << 20)
        except MemoryError as error:
            print(type(error).__name__, error.limit_bytes)
        dpmem.set_per_process_memory_fraction(0.5)
        m.MemoryUSMDevice(10 << 20)
        print(dpmem.is_tracking())
    """
    ran = run_plainly(tmp_path, source) if how == "plainly" else run(tmp_path, source)
    expected = f"None 100000000\nOutOfDeviceMemory {16 * MIB}\nTrue\n"
    assert (ran.exit_code, ran.stdout) == (0, expected), ran.stderr
    if how == "run":
        assert ran.report["recording"]["complete"]
        (row,) = (row for row in ran.report["usm"] if row["kind"] == "device")
        assert (row["alloc_count"], row["failed_count"]) == (2, 1)


def test_a_limit_without_a_device_says_so(tmp_path):
    source = """
        import dpmem
        try:
            dpmem.set_memory_limit("1GB")
        except RuntimeError as error:
            print(error)
    """
    ran = run_plainly(tmp_path, source, ONEAPI_DEVICE_SELECTOR="cuda:gpu")
    assert ran.stdout.startswith("no SYCL device can be asked about ("), ran.stderr
    assert ran.stdout.endswith("`dpmem doctor` says more\n")


def test_a_failure_that_is_over_explains_no_other(tmp_path):
    source = """
        import dpctl.memory as m
        try:
            m.MemoryUSMDevice(32 << 20)
        except MemoryError:
            pass
        raise {}
    """
    for error in ('MemoryError("of the host")', 'RuntimeError("Unable to allocate a port")'):
        ran = run(tmp_path, source.replace("{}", error), "--limit", "16MiB")
        assert ran.exit_code == 1
        assert error.split('"')[1] in ran.stderr
        assert "what helps" not in ran.stderr, ran.stderr


def test_each_thread_is_told_of_its_own_failure(tmp_path):
    source = """
        import threading, dpctl.memory as m, dpmem
        gate, seen = threading.Barrier(2), {}
        def fail(size):
            try:
                m.MemoryUSMDevice(size << 20)
            except MemoryError:
                gate.wait()
                seen[size] = dpmem.last_out_of_memory().requested_bytes >> 20
        threads = [threading.Thread(target=fail, args=(size,)) for size in (32, 64)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        # This thread had none, so it hears of the newest of all.
        print(sorted(seen.items()), dpmem.last_out_of_memory().requested_bytes >> 20 in (32, 64))
    """
    ran = run(tmp_path, source, "--limit", "16MiB")
    assert (ran.exit_code, ran.stdout) == (0, "[(32, 32), (64, 64)] True\n"), ran.stderr


def test_host_memory_is_not_told_of_a_devices_limit(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        from dpmem import _failure, _runtime, _shortage_text
        for make in (m.MemoryUSMHost, m.MemoryUSMDevice):
            block = make(3 << 20)
            del block
        _runtime.name_devices()
        failure = _failure.Failure(2 << 30, "host", "opencl:cpu:0", False)
        _shortage_text.complete(failure)
        print(*failure.text.splitlines()[1:3], sep="\\n")
        try:
            m.MemoryUSMHost(1 << 45)
        except dpmem.OutOfDeviceMemory as error:
            print(error.kind, error.limit_bytes, "limit none" in str(error), "raise the limit" in str(error))
    """
    ran = run(tmp_path, source, "--pool", "--limit", "16MiB")
    room, own, raised = ran.stdout.splitlines()
    assert room.strip().startswith("opencl:cpu:0: limit none, "), ran.stderr
    assert own.endswith(" 3 MiB cached by the pool")
    assert raised == "host None True False"


@pytest.mark.parametrize("pool", [[], ["--pool"]], ids=["limit", "pool"])
def test_a_program_survives_running_out(tmp_path, pool):
    source = program("survives.py", 16)
    ran = run(tmp_path, source, *pool, timeout=60, DPMEM_TEST_POISON="1")
    assert ran.exit_code == 0, ran.stderr
    caught, reserved, allocated = ran.stdout.rsplit(" ", 2)
    assert ast.literal_eval(caught) == {"OutOfDeviceMemory": 16, "RuntimeError": 0}
    assert int(reserved) - int(allocated) < 100_000


def test_a_callback_may_allocate_from_what_it_has_freed(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        dpmem.enable_pool("100MiB")
        kept = [m.MemoryUSMDevice(10 << 20) for _ in range(9)]

        @dpmem.on_out_of_memory
        def spill(shortage):
            del kept[:3]
            print("spilled into", m.MemoryUSMDevice(15 << 20).nbytes >> 20)
            try:
                m.MemoryUSMDevice(90 << 20)
            except dpmem.OutOfDeviceMemory as error:
                print(error.requested_bytes >> 20, error.limit_bytes >> 20, "__main__.kept" in str(error))
            return True

        print(m.MemoryUSMDevice(30 << 20).nbytes >> 20)
    """
    ran = run(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, "spilled into 15\n90 100 True\n30\n"), ran.stderr
    assert rescued(ran) == {"trim": 1, "callback": 1}


@pytest.mark.parametrize("pool", [[], ["--pool"], ["--limit", "10MiB"]], ids=["nothing", "pool", "limit"])
def test_a_request_that_is_wrong_in_itself_is_no_shortage(tmp_path, pool):
    source = """
        import dpctl.memory as m, dpmem
        dpmem.on_out_of_memory(lambda shortage: print("asked to free something"))
        for cls in (m.MemoryUSMDevice, m.MemoryUSMShared, m.MemoryUSMHost):
            try:
                cls(1000, alignment=3)
            except Exception as error:
                print(type(error) is m.USMAllocationError, str(error))
        print(dpmem.last_out_of_memory(), dpmem.memory_stats()["num_ooms"])
    """
    ran = run(tmp_path, source, *pool)
    assert ran.stdout == "True USM allocation failed\n" * 3 + "None 0\n", ran.stderr
    assert [row["failed_count"] for row in ran.report["usm"]] == [1, 1, 1]
    assert "DPM503" not in {finding["code"] for finding in ran.report["findings"]}


def test_nor_is_it_one_after_a_shortage(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        for size, alignment in ((1 << 62, 0), (1000, 3)):
            try:
                m.MemoryUSMDevice(size, alignment=alignment)
            except m.USMAllocationError as error:
                print(type(error).__name__, str(error).split(":")[0], sep=": ")
        raise dpmem.OutOfDeviceMemory("my own allocation failed")
    """
    ran = run(tmp_path, source, "--pool")
    told = "OutOfDeviceMemory: out of device memory\nUSMAllocationError: USM allocation failed\n"
    assert ran.stdout == told, ran.stderr
    assert "OutOfDeviceMemory: my own allocation failed" in ran.stderr


@pytest.mark.parametrize("cls", ["MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"])
def test_a_process_that_may_have_no_more_is_a_shortage(tmp_path, cls):
    source = f"""
        import resource
        import dpctl.memory as m, dpmem
        m.{cls}(1000)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
        try:
            m.{cls}(1 << 30)
        except dpmem.OutOfDeviceMemory as error:
            print(error.kind, error.requested_bytes)
        print(dpmem.memory_stats()["num_ooms"])
    """
    ran = run(tmp_path, source, "--pool")
    assert ran.stdout == f"{cls.removeprefix('MemoryUSM').lower()} {1 << 30}\n1\n", ran.stderr
    assert "DPM503" in {finding["code"] for finding in ran.report["findings"]}


def test_a_share_of_an_unknown_capacity_is_no_limit_and_is_said_to_be_none(tmp_path):
    source = """
        from dpmem import _native
        _native.hook_inject("no-capacity")
        import dpctl.memory as m, dpmem
        kept = m.MemoryUSMDevice(1 << 20)
        print(_native.pool_reading(dpmem.where(kept).device)["limit_bytes"])
        try:
            dpmem.enable_pool(limit="50%")
        except RuntimeError as error:
            print("capacity of `opencl:cpu:0` is unknown" in str(error), dpmem.is_tracking())
    """
    ran = run(tmp_path, source.replace("dpmem.enable_pool", "if False: dpmem.enable_pool"), "--limit", "50%")
    assert ran.stdout == "None\n", ran.stderr
    assert "no limit on opencl:cpu:0: its capacity is unknown" in " ".join(ran.stderr.split())
    ran = run_plainly(tmp_path, source.replace("kept = ", "dpmem.start(); kept = "))
    assert (ran.exit_code, ran.stdout) == (0, "None\nTrue True\n"), ran.stderr
    ran = run(tmp_path, "import dpctl.memory as m; m.MemoryUSMDevice(1 << 20)", "--limit", "50%")
    assert "no limit" not in ran.stderr
