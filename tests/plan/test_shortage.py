"""Running out of memory inside the function: smaller chunks, the same result, said once."""

import builtins
import subprocess
import sys

import dpctl.memory
import dpnp
import numpy as np
import pytest

import dpmem
from dpmem import _journal

#: A limit can only be set where the process has a queue.
QUEUE = dpnp.empty(0).sycl_queue


@pytest.fixture
def data():
    return np.random.default_rng(4).standard_normal((4096, 16))


@pytest.fixture
def limited():
    """Hardly more room than a few chunks need."""

    def limit(size):
        dpmem.start()
        dpmem.set_memory_limit(dpmem.memory_reserved() + size)

    yield limit
    dpmem.disable_pool()
    dpmem.stop()


@pytest.mark.parametrize(
    "fn",
    [lambda x: x * 2 + x * 3 + x * 4, lambda x: dpnp.sort(x * 1, axis=0).sum(axis=1) * 0 + x.sum(axis=1)],
    ids=["dpctl", "c++"],
)
def test_the_chunk_is_halved_until_it_fits(data, limited, fn, tmp_path, capfd):
    expected = dpnp.asnumpy(fn(dpnp.asarray(data)))
    plan = dpmem.plan_chunks(fn, data)
    limited(data.nbytes * 2)
    got = dpmem.map_chunks(fn, data, plan=plan, rows=4096, in_flight=1, out=tmp_path / "o.npy")
    assert got.tobytes() == expected.tobytes()
    said = capfd.readouterr().err
    assert said.count("dpmem:") == 1
    assert "a chunk of 4,096 rows ran out of memory" in said
    assert "2,048 rows" in said


def test_reductions_count_each_row_once(data, limited, capfd):
    plan = dpmem.plan_chunks(lambda x: x * 2 + x * 3 + x * 4, data, reduce="sum")
    limited(data.nbytes * 2)
    ones = np.ones_like(data)
    got = dpmem.map_chunks(lambda x: x * 2 + x * 3 + x * 4, ones, plan=plan, rows=4096, reduce="sum")
    assert got.tolist() == [9.0 * 4096] * 16
    assert "ran out" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("MemoryError", "no"),
        ("RuntimeError", "Unable to allocate device_memory"),
        ("USMAllocationError", "USM allocation failed"),
    ],
)
def test_a_chunk_that_the_function_has_changed_is_read_again(data, kind, text, capfd):
    kind = getattr(builtins, kind, None) or getattr(dpctl.memory, kind)
    calls = []

    def unlucky(x):
        calls.append(x.shape[0])
        x += 1
        if calls.count(1000) == 2 and calls[-1] == 1000:
            raise kind(text)
        return x

    plan = dpmem.plan_chunks(lambda x: x, data)
    assert np.array_equal(dpmem.map_chunks(unlucky, data, plan=plan, rows=1000), data + 1)
    assert calls[:4] == [1000, 1000, 500, 500]
    assert sum(calls) == 4096 + 1000
    assert capfd.readouterr().err.count("dpmem:") == 1


def test_one_row_that_runs_out_raises_the_error_itself(data, tmp_path):
    def never(x):
        raise MemoryError("not even this")

    plan = dpmem.plan_chunks(lambda x: x, data)
    with pytest.raises(MemoryError, match="not even this") as failure:
        dpmem.map_chunks(never, data, plan=plan, rows=4, out=tmp_path / "o.npy")
    if sys.version_info >= (3, 11):
        assert failure.value.__notes__ == ["in chunk 0, rows 0 to 1 of 4096"]
    assert list(tmp_path.iterdir()) == []


def test_an_own_reduction_that_runs_out_is_not_left_half_done(data):
    failing = [True]

    def joined(a, b):
        if failing and a.shape[0] > 1000:
            failing.clear()
            raise MemoryError("joining")
        return dpnp.concatenate([a, b])

    plan = dpmem.plan_chunks(lambda x: x, data[:100], reduce=dpnp.add)
    got = dpmem.map_chunks(lambda x: x, data, plan=plan, rows=512, reduce=joined)
    assert got.tobytes() == data.tobytes()
    assert not failing


@pytest.mark.parametrize("at", range(2, 12))
def test_a_reduction_that_changes_its_argument_and_then_runs_out(data, at):
    """What it has combined by then must not be combined again."""
    calls = []

    def added(a, b):
        calls.append(0)
        if len(calls) == at:
            raise MemoryError("adding")
        a += b
        return a

    def fn(x):
        return x.sum(axis=0)

    plan = dpmem.plan_chunks(fn, data, reduce=dpnp.add)
    ones = np.ones_like(data)
    assert dpmem.map_chunks(fn, ones, plan=plan, rows=256, reduce=added).tolist() == [4096.0] * 16
    assert len(calls) > at


def test_a_record_that_runs_out_of_memory_ends_the_job(data, tmp_path, monkeypatch):
    """Its chunk is counted: gone on from here, the resume file would lack it."""
    file, resume = tmp_path / "source.npy", tmp_path / "r"
    np.save(file, data)
    record = _journal.Journal.record
    lacking = [True]

    def failing(self, done, *rest):
        if done == 2048 and lacking:
            lacking.clear()
            raise MemoryError("recording")
        record(self, done, *rest)

    monkeypatch.setattr(_journal.Journal, "record", failing)
    words = {"rows": 512, "reduce": "sum", "resume": resume}

    def fn(x):
        return x

    with pytest.raises(MemoryError, match="recording"):
        dpmem.map_chunks(fn, file, **words)
    told = []
    got = dpmem.map_chunks(fn, file, progress=lambda done, total: told.append(done), **words)
    assert told[0] == 2048, "the chunk without a record is done again"
    assert got.tobytes() == dpmem.map_chunks(fn, file, rows=512, reduce="sum").tobytes()


def test_a_device_that_is_full(opencl_only):
    program = """
import dpnp, numpy, dpmem, dpctl.memory
data = numpy.random.default_rng(1).standard_normal((40000, 64))
def fn(x):
    return dpnp.sqrt(x * x + 1)
plan = dpmem.plan_chunks(fn, data)
taken = dpctl.memory.MemoryUSMDevice((64 << 20) - 3 * data.nbytes // 2)
got = dpmem.map_chunks(fn, data, plan=plan, rows=20000)
print(numpy.allclose(got, numpy.sqrt(data * data + 1)))
"""
    ended = opencl_only.having("name=Tiny;mem=64MiB").run(program)
    assert (ended.exit_code, ended.stdout) == (0, "True\n"), ended.stderr
    assert ended.stderr.count("ran out of memory") == 1


def test_without_room_for_the_output_the_error_names_file_and_offset(tmp_path):
    program = f"""
import resource, numpy, dpmem
data = numpy.ones((10000, 16))
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
try:
    dpmem.map_chunks(lambda x: x, data, out={str(tmp_path / "o.npy")!r})
except OSError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "File too large while writing 1280144 bytes at offset 0 of" in ended.stdout
    assert "o.npy.partial" in ended.stdout
    assert list(tmp_path.iterdir()) == []


def test_without_room_for_the_resume_file_the_error_names_it(tmp_path):
    program = f"""
import resource, numpy, dpmem
data = numpy.ones((10000, 16))
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
try:
    dpmem.map_chunks(lambda x: x, data, rows=1000, reduce="concatenate", resume={str(tmp_path / "r")!r})
except OSError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "File too large while writing at offset " in ended.stdout
    assert str(tmp_path / "r") in ended.stdout
