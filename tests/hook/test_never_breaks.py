"""Whatever happens inside dpmem or around it, the program's own calls go through, once, with their own results."""

import shutil
import subprocess
from textwrap import dedent

import pytest
from programs import allocations, run, run_plainly

WORK = """
    import dpnp
    total = 0.0
    for i in range(30):
        x = dpnp.arange(1000, dtype="f8") + i
        total += float(x.sum())
    print(total)
"""


def test_a_panic_in_a_shim(tmp_path):
    plain = run_plainly(tmp_path, WORK)
    ran = run(
        tmp_path,
        "import dpnp\ndpnp.ones(3)\nimport dpmem._native as n; n.hook_inject('panic', 40)\n" + dedent(WORK),
    )
    assert (ran.exit_code, ran.stdout) == (0, plain.stdout)
    recording = ran.report["recording"]
    assert not recording["complete"]
    assert "a fault that a test ordered" in recording["reason"]
    assert "panicked" not in ran.stderr
    assert " ".join(ran.stderr.split()).count("dpmem itself failed") == 1
    assert 0 < recording["events"] < 60, "recording stopped there"


def test_more_sites_than_the_table_holds(tmp_path):
    source = """
        import dpctl.memory as m, dpctl
        q = dpctl.SyclQueue()
        lines = "\\n".join("    m.MemoryUSMDevice(64, queue=q)" for _ in range(100))
        space = {"m": m, "q": q}
        for n in range(700):
            exec(compile(f"def f{n}():\\n" + lines, "many.py", "exec"), space)
            space[f"f{n}"]()
        print("done")
    """
    ran = run(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, "done\n")
    assert allocations(ran.report) == 70_000
    assert sum(site["alloc_count"] for site in ran.report["sites"]) >= 70_000
    assert any(site["label"] == "other stacks" for site in ran.report["sites"])


def test_fork_before_the_first_use(tmp_path):
    source = """
        import os, sys
        pid = os.fork()
        if pid == 0:
            import dpctl.memory as m
            import dpmem
            b = m.MemoryUSMDevice(100)
            b.copy_from_host(b"y" * 100)
            try:
                dpmem.memory_allocated()
            except RuntimeError as error:
                print("child:", "forked child" in str(error), flush=True)
            os._exit(7)
        print("child exit", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        import dpctl.memory as m
        keep = m.MemoryUSMDevice(100)
    """
    ran = run(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, "child: True\nchild exit 7\n"), ran.stderr
    assert allocations(ran.report) == 1, "the parent's"
    assert ran.stderr.count("USM  ") == 1, "one summary"


def test_fork_after_use(tmp_path):
    source = """
        import os, threading
        import dpctl.memory as m, dpctl
        q = dpctl.SyclQueue()
        stop = []
        def allocate():
            while not stop:
                m.MemoryUSMDevice(512, queue=q)
        threads = [threading.Thread(target=allocate) for _ in range(2)]
        [t.start() for t in threads]
        codes = []
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                os._exit(3)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        stop.append(1)
        [t.join() for t in threads]
        print(set(codes))
    """
    ran = run(tmp_path, source, PYTHONWARNINGS="ignore::DeprecationWarning")
    assert (ran.exit_code, ran.stdout) == (0, "{3}\n"), ran.stderr
    assert ran.report["recording"]["complete"], ran.report["recording"]
    device = next(row for row in ran.report["usm"] if row["kind"] == "device")
    assert device["current_count"] == 0


def test_exit_with_work_queued(tmp_path):
    source = """
        import dpnp
        x = dpnp.ones((1024, 1024), dtype="f4")
        for _ in range(5):
            y = x @ x
        print("queued")
        raise SystemExit(5)
    """
    for _ in range(3):
        ran = run(tmp_path, source)
        assert (ran.exit_code, ran.stdout) == (5, "queued\n")
        assert ran.report["recording"]["complete"]
        states = {row["state"] for row in ran.report["live"]}
        assert "referenced" in states
        assert states <= {"referenced", "runtime"}


def test_work_that_outlasts_the_patience(tmp_path):
    source = """
        import dpnp
        import dpmem._recording as r
        r.DRAIN_S = 0.2
        x = dpnp.ones((1500, 1500), dtype="f4")
        out = dpnp.empty_like(x)
        x.sycl_queue.wait()
        for _ in range(60):
            dpnp.matmul(x, x, out=out)
        print("queued")
    """
    ran = run(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, "queued\n"), ran.stderr
    assert any("did not end in time" in note for note in ran.report["recording"]["notes"])


def test_a_library_finds_what_it_loads_along_its_own_path(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "sub").mkdir()
    (tmp_path / "plug.c").write_text("int answer(void) { return 42; }")
    (tmp_path / "host.c").write_text(
        '#include <dlfcn.h>\nint load(void) { void *p = dlopen("libplug.so", RTLD_NOW);'
        ' return p ? ((int (*)(void))dlsym(p, "answer"))() : -1; }'
    )
    shared = ["cc", "-shared", "-fPIC"]
    subprocess.run([*shared, "plug.c", "-o", "sub/libplug.so"], cwd=tmp_path, check=True)
    subprocess.run([*shared, "host.c", "-o", "libhost.so", "-ldl", "-Wl,-rpath,$ORIGIN/sub"], cwd=tmp_path, check=True)
    ran = run(tmp_path, "import ctypes, os; print(ctypes.CDLL(os.path.abspath('libhost.so')).load())")
    assert ran.stdout == "42\n", ran.stderr


def test_code_that_is_made_again_and_again_keeps_its_lines(tmp_path):
    source = """
        import dpctl.memory as m, gc
        kept = []
        for n in range(8):
            text = "\\n" * (n + 1) + "kept.append(m.MemoryUSMDevice(1000 + n))"
            exec(compile(text, f"cell_{n}.py", "exec"), {"kept": kept, "m": m, "n": n})
            gc.collect()
    """
    ran = run(tmp_path, source)
    seen = {
        (site["stack"][0]["file"], site["stack"][0]["line"], site["allocated_bytes"])
        for site in ran.report["sites"]
        if site["kind"] == "device"
    }
    assert seen == {(f"cell_{n}.py", n + 2, 1000 + n) for n in range(8)}


def test_daemon_threads_that_allocate_to_the_end(tmp_path):
    source = """
        import threading
        import dpctl.memory as m, dpctl
        q = dpctl.SyclQueue()
        under_way = threading.Barrier(4)
        def allocate():
            m.MemoryUSMDevice(512, queue=q)
            under_way.wait()
            while True:
                m.MemoryUSMDevice(512, queue=q)
        for _ in range(3):
            threading.Thread(target=allocate, daemon=True).start()
        under_way.wait()
        print("end")
    """
    for _ in range(5):
        ran = run(tmp_path, source)
        assert (ran.exit_code, ran.stdout) == (0, "end\n"), ran.stderr
        assert ran.report is not None


def test_start_and_stop_while_threads_allocate(tmp_path):
    source = """
        import threading
        import dpctl.memory as m, dpctl, dpmem
        q = dpctl.SyclQueue()
        keep = m.MemoryUSMDevice(64, queue=q)
        stop, wrong = [], []
        def allocate(n):
            data = bytes([n]) * 256
            while not stop:
                block = m.MemoryUSMDevice(256, queue=q)
                block.copy_from_host(data)
                if block.copy_to_host().tobytes() != data:
                    wrong.append(n)
        threads = [threading.Thread(target=allocate, args=(n,)) for n in range(3)]
        [t.start() for t in threads]
        for _ in range(100):
            dpmem.start()
            m.MemoryUSMDevice(64, queue=q)
            dpmem.stop()
        stop.append(1)
        [t.join() for t in threads]
        dpmem.start()
        del keep
        print(wrong, dpmem.memory_stats()["allocated_bytes.device.current"])
    """
    ran = run_plainly(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, "[] 0\n"), ran.stderr


def test_a_refused_allocation_is_counted_and_raised(tmp_path):
    source = """
        import dpctl, dpctl.memory as m
        size = dpctl.SyclDevice().max_mem_alloc_size + (1 << 40)
        for _ in range(3):
            try:
                m.MemoryUSMDevice(size)
            except m.USMAllocationError:
                print("refused")
    """
    plain, ran = run_plainly(tmp_path, source), run(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (plain.exit_code, plain.stdout)
    device = next(row for row in ran.report["usm"] if row["kind"] == "device")
    assert (device["failed_count"], device["alloc_count"], device["current_bytes"]) == (3, 0, 0)
    assert ran.report["recording"]["complete"]
