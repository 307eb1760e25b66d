"""The ways in: when they come, how they prove themselves, and what happens where none works."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest
from programs import allocations, run, run_plainly

TEN = """
    import dpctl.memory as m
    blocks = [m.MemoryUSMDevice(1000) for _ in range(10)]
    host, shared = m.MemoryUSMHost(100), m.MemoryUSMShared(200)
    blocks[0].copy_from_host(b"x" * 1000)
    print(len(blocks), blocks[0].copy_to_host()[:3].tobytes())
"""


def test_by_symbols(tmp_path):
    ran = run(tmp_path, TEN)
    assert (ran.exit_code, ran.stdout) == (0, "10 b'xxx'\n")
    assert ran.report["recording"]["complete"], ran.report["recording"]
    assert "found by symbols" in ran.report["recording"]["mechanism"]
    assert allocations(ran.report) == 10


def test_by_watching(tmp_path):
    ran = run(tmp_path, "import dpmem._native as n; n.hook_inject('no-symbols')\n" + dedent(TEN))
    assert (ran.exit_code, ran.stdout) == (0, "10 b'xxx'\n")
    assert not ran.report["recording"]["complete"]
    assert "copies through buffers" in ran.report["recording"]["reason"]
    assert "watching" in ran.report["recording"]["mechanism"]
    named = {row["device"] for row in ran.report["usm"] if row["kind"] != "host"}
    assert named == {"opencl:cpu:0"}, "there is just one it can be; whose the host's is, can't be asked this way"
    assert [allocations(ran.report, kind) for kind in ("device", "host", "shared")] == [10, 1, 1]
    assert {t["direction"]: t["bytes"] for t in ran.report["transfers"]} == {
        "host_to_device": 1000,
        "device_to_host": 1000,
    }


def test_no_way_in(tmp_path):
    source = "import dpmem._native as n; n.hook_inject('no-way-in')\n" + dedent(TEN)
    for options in ((), ("--no-summary",)):
        ran = run(tmp_path, source, *options)
        assert (ran.exit_code, ran.stdout) == (0, "10 b'xxx'\n")
        recording = ran.report["recording"]
        assert not recording["complete"]
        assert "slot of `urUSMHostAlloc`" in recording["reason"]
        unwrapped = " ".join(ran.stderr.split())
        assert unwrapped.count("slot of `urUSMHostAlloc`") == 1, "stderr says so once"
        assert ran.report["usm"] == []


def test_a_table_that_nobody_calls_through_is_given_up(tmp_path):
    source = """
        import dpmem._native as n; n.hook_inject("dead-table")
        import dpctl.memory as m
        for _ in range(30):
            m.MemoryUSMDevice(64)
        print(n.hook_status()["mechanism"])
    """
    ran = run(tmp_path, source)
    assert ran.exit_code == 0
    assert "watching" in ran.stdout, "the next way was tried"
    recording = ran.report["recording"]
    assert not recording["complete"]
    assert "went unseen" in recording["reason"]
    assert 5 <= allocations(ran.report) < 30


@pytest.mark.parametrize("first_line", ["import dpnp", "pass"])
def test_variables_that_the_program_sets_count(tmp_path, first_line):
    """A selector that is set after the import works as without dpmem."""
    source = f"""
        {first_line}
        import os
        os.environ["ONEAPI_DEVICE_SELECTOR"] = "level_zero:gpu"
        import dpctl
        print(dpctl.get_devices())
        try:
            dpctl.SyclQueue()
        except Exception as error:
            print(type(error).__name__)
    """
    plain, ran = run_plainly(tmp_path, source), run(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (plain.exit_code, plain.stdout)
    assert "SyclQueueCreationError" in ran.stdout
    assert ran.report["recording"]["complete"]
    assert ran.report["devices"] == [], "nothing of SYCL was brought up to ask"


def test_nothing_is_brought_up_for_a_program_without_sycl(tmp_path):
    ran = run(tmp_path, "import sys; print('dpctl' in sys.modules, 'numpy' in sys.modules)")
    assert ran.stdout == "False False\n"
    assert ran.report["recording"]["complete"]
    assert ran.report["recording"]["mechanism"] is None
    assert "no USM allocation was made" in ran.stderr


def test_a_program_that_imports_and_uses_nothing(tmp_path):
    ran = run(tmp_path, "import dpnp, dpctl; print(open('/proc/self/maps').read().count('libintelocl'))")
    assert ran.stdout == "0\n", "the OpenCL driver is not even loaded"


def test_start_and_stop_leave_the_table_as_it_was(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        from dpmem import _native
        def slots():
            m.MemoryUSMDevice(64)
            return _native.hook_status()["phase"]
        m.MemoryUSMDevice(64)
        for _ in range(3):
            dpmem.start()
            m.MemoryUSMDevice(64)
            assert dpmem.memory_stats()["allocation.device.allocated"] == 1
            dpmem.stop()
            m.MemoryUSMDevice(64)
            assert dpmem.memory_stats()["allocation.device.allocated"] == 1
        print(slots())
    """
    ran = run_plainly(tmp_path, source)
    assert ran.stdout == "idle\n", ran.stderr


def test_a_stripped_runtime(tmp_path):
    """A libsycl without its symbol table, put in the place of the real one by the linker's own search."""
    import shutil
    import subprocess

    real = sorted(Path(sys.prefix, "lib").glob("libsycl.so.[0-9]"))[0]
    if (
        shutil.which("strip") is None
        or "libur_loader" in subprocess.run(["readelf", "-d", str(real)], capture_output=True, text=True).stdout
    ):
        pytest.skip("this runtime's loader is a library of its own, whose symbols can't be stripped")
    library = tmp_path / "lib"
    library.mkdir()
    subprocess.run(["strip", "-o", str(library / real.name), str(real)], check=True)
    ran = run(tmp_path, TEN, LD_PRELOAD=str(library / real.name), LD_LIBRARY_PATH=f"{sys.prefix}/lib")
    assert (ran.exit_code, ran.stdout) == (0, "10 b'xxx'\n"), ran.stderr
    assert "watching" in ran.report["recording"]["mechanism"]
    assert allocations(ran.report) == 10
