"""However it ends, the thread ends with it and memory comes back."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import dpnp
import numpy as np
import pytest

import dpmem


def threads():
    """How many reading threads this process has, as the system lists them."""
    names = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/comm") as comm:
            names.append(comm.read().strip())
    return names.count("dpmem-stream")


@pytest.fixture(autouse=True)
def tracked():
    gc.collect()
    dpmem.start()
    before = dpmem.memory_allocated()
    assert threads() == 0
    yield
    gc.collect()
    dpmem.synchronize()
    assert threads() == 0
    # dpnp keeps single bytes for itself.
    assert dpmem.memory_allocated() - before < 64
    dpmem.stop()


def source():
    return np.arange(100_000.0)


def test_the_end(way):
    for _, _x in dpmem.chunks(source(), 10_000):
        assert threads() == 1
    assert threads() == 0
    del _x


def test_a_break(way):
    last = None
    for _, x in dpmem.chunks(source(), 1000):
        last = x
        break
    assert threads() == 0
    assert float(last.sum()) == sum(range(1000))


def test_an_exception_in_the_loop(way):
    def loop():
        for _, _x in dpmem.chunks(source(), 1000):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()


def test_an_iterator_that_is_forgotten(way):
    dpmem.chunks(source(), 1000)
    assert threads() == 0
    it = dpmem.chunks(source(), 1000)
    next(it)
    del it
    assert threads() == 0


def test_an_iterator_in_a_cycle(way):
    class Cycle:
        pass

    cycle = Cycle()
    cycle.it, cycle.me = dpmem.chunks(source(), 1000), cycle
    next(cycle.it)
    del cycle
    gc.collect()
    assert threads() == 0


def test_a_with_block(way):
    with dpmem.chunks(source(), 1000) as it:
        next(it)
    assert threads() == 0
    it.close()
    assert list(it) == []


def test_a_source_that_fails(way):
    class Failing:
        shape, dtype = (10,), np.dtype("f4")

        def __getitem__(self, index):
            raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            next(dpmem.chunks(Failing(), 2))


def test_ctrl_c_in_the_loop(way):
    def loop():
        for _ in dpmem.chunks(source(), 10):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        loop()
    assert threads() == 0


WAITING = """
import time
import numpy as np, dpmem
class Slow:
    # Answers never: as a read that hangs.
    shape, dtype = (10,), np.dtype("f4")
    def __getitem__(self, index):
        print("waiting", flush=True)
        time.sleep(100)
try:
    next(dpmem.chunks(Slow(), 2))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def program(text, **options):
    code = f"from dpmem import _icd; _icd.use_pip_runtime()\n{text}"
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True, **options)


def test_ctrl_c_while_waiting():
    process = program(WAITING)
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("interrupted\n", 0)


def test_an_iterator_at_the_end_of_the_program():
    process = program(
        "import numpy as np, dpmem\n"
        "it = dpmem.chunks(np.zeros(10**7), 10**6, in_flight=3)\n"
        "next(it)\n"
        "it.me = it\n"
        "print('end')\n"
    )
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("end\n", 0)


FORK = """
import os, numpy as np, dpmem
it = dpmem.chunks(np.arange(8.0), 2)
next(it)
child = os.fork()
if child == 0:
    try:
        next(it)
    except RuntimeError as error:
        print(error, flush=True)
    it.close()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), [index.start for index, _ in it])
"""


def test_a_forked_child_has_no_reader():
    out, _ = program(FORK).communicate(timeout=60)
    first, second = out.splitlines()
    assert "stayed in the process that this one was forked from" in first
    assert second == "7 [2, 4, 6]"


def test_two_threads_with_an_iterator_each(way):
    found = {}

    def work(name, factor):
        total = 0.0
        for _, x in dpmem.chunks(source() * factor, 1000):
            total += float(dpnp.asnumpy(x).sum())
        found[name] = total

    workers = [threading.Thread(target=work, args=(name, name)) for name in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == {1: source().sum(), 2: (2 * source()).sum()}


def test_two_threads_with_one_iterator(way):
    asked, answer = threading.Event(), threading.Event()

    class Waiting:
        shape, dtype = (4,), np.dtype("f4")

        def __getitem__(self, index):
            asked.set()
            answer.wait(60)
            return np.arange(4, dtype="f4")[index]

    it, found = dpmem.chunks(Waiting(), 2), []
    worker = threading.Thread(target=lambda: found.extend(dpnp.asnumpy(x).tolist() for _, x in it))
    worker.start()
    assert asked.wait(60)
    with pytest.raises(RuntimeError, match="use them in one thread"):
        next(it)
    answer.set()
    worker.join()
    assert found == [[0, 1], [2, 3]]


def test_python_goes_on_while_the_thread_reads(tmp_path):
    # The reader needs no GIL: a thread that never lets it go can't keep it from reading.
    np.save(tmp_path / "a.npy", np.ones(2_000_000))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        it = dpmem.chunks(tmp_path / "a.npy", 1_000_000)
        next(it)
        deadline = time.monotonic() + 60
        _, fill = it._feed._filling[0]
        while not fill.has_ended() and time.monotonic() < deadline:
            pass
        assert fill.has_ended()
        assert dpnp.asnumpy(next(it)[1]).sum() == 1_000_000
        it.close()
    finally:
        sys.setswitchinterval(interval)
