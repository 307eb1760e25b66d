"""Jobs that end too early: what they leave, and that the next one comes to the same."""

import errno
import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import dpnp
import numpy as np
import pytest

import dpmem
from dpmem import _fingerprint, _journal, _outputs

JOB = Path(__file__).with_name("job.py")
ROWS = 1000


@pytest.fixture
def source(tmp_path):
    data = np.random.default_rng(8).standard_normal((ROWS, 7))
    np.save(tmp_path / "source.npy", data)
    return tmp_path / "source.npy"


class Stop(Exception):
    """Ends a job where a test wants it to."""


def stopping(after, error=Stop, fn=lambda x: x * 2):
    calls = []

    def called(x):
        calls.append(x.shape[0])
        if len(calls) > after:
            raise error
        return fn(x)

    return called


def job(folder, kind, die_after=None):
    words = [sys.executable, str(JOB), str(folder), kind, *([] if die_after is None else [str(die_after)])]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["both", "own"])
def test_after_sigkill_the_job_goes_on_and_comes_to_the_same(source, tmp_path, kind):
    """Other kinds, and moments in between, are in `tests/soak`."""
    whole = job(tmp_path, kind)
    assert whole.returncode == 0, whole.stderr
    expected = [line for line in whole.stdout.splitlines() if not line.isdigit()]
    (tmp_path / "out.npy").unlink(missing_ok=True)
    killed = job(tmp_path, kind, 7)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "out.npy").exists()
    resumed = job(tmp_path, kind)
    assert resumed.returncode == 0, resumed.stderr
    lines = resumed.stdout.splitlines()
    assert lines[0] == str(8 * 50), "the seven chunks that were finished are not done again"
    assert [line for line in lines if not line.isdigit()] == expected
    assert sorted(os.listdir(tmp_path)) == sorted({"source.npy", *(["out.npy"] if "file" in whole.stdout else [])})


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop])
def test_an_interrupted_job_keeps_its_output_and_says_how_far_it_came(source, tmp_path, error):
    def fn(x):
        return x * 2

    # The same code, so that it is the same job.
    plan = dpmem.plan_chunks(fn, source)
    state = {"left": 3}

    def counted(x):
        state["left"] -= 1
        if state["left"] < 0:
            raise error
        return x * 2

    out = tmp_path / "out.npy"
    with pytest.raises(error) as caught:
        dpmem.map_chunks(counted, source, out=out, plan=plan, rows=100, resume=True)
    if sys.version_info >= (3, 11):
        assert "300 of 1000 rows are done" in caught.value.__notes__[-1]
    assert sorted(os.listdir(tmp_path)) == ["out.npy.partial", "out.npy.resume", "source.npy"]
    state["left"] = 100
    got = dpmem.map_chunks(counted, source, out=out, plan=plan, rows=100, resume=True)
    assert state["left"] == 93
    assert np.array_equal(got, np.load(source) * 2)
    assert sorted(os.listdir(tmp_path)) == ["out.npy", "source.npy"]


def test_without_resume_nothing_half_written_stays(source, tmp_path):
    plan = dpmem.plan_chunks(lambda x: x * 2, source)
    with pytest.raises(KeyboardInterrupt):
        dpmem.map_chunks(stopping(3, KeyboardInterrupt), source, out=tmp_path / "o.npy", plan=plan, rows=100)
    assert os.listdir(tmp_path) == ["source.npy"]


def begun(source, tmp_path, fn=None, **arguments):
    """A job that ended after three of ten chunks."""
    plan = dpmem.plan_chunks(lambda x: x * 2, source)
    state = {"left": 3}

    def counted(x):
        state["left"] -= 1
        if state["left"] < 0:
            raise Stop
        return x * 2

    def again(**other):
        state["left"] = 100
        return dpmem.map_chunks(fn or counted, source, **{**words, **other})

    words = {"out": tmp_path / "out.npy", "plan": plan, "rows": 100, "resume": tmp_path / "r", **arguments}
    with pytest.raises(Stop):
        dpmem.map_chunks(counted, source, **words)
    return again


def test_a_resume_file_of_another_job_is_refused(source, tmp_path):
    again = begun(source, tmp_path)
    before = (tmp_path / "r").read_bytes()
    with pytest.raises(ValueError, match=r"another job.*reduce was None, is 'sum'"):
        again(reduce="sum")
    with pytest.raises(ValueError, match=r"another job.*out was.*out.npy"):
        again(out=tmp_path / "other.npy")
    data = np.load(source)
    os.utime(source, ns=(1, 1))
    with pytest.raises(ValueError, match=r"another job.*source was"):
        again()
    np.save(source, data[:900])
    with pytest.raises(ValueError, match="rows was 1000, is 900"):
        again()
    assert (tmp_path / "r").read_bytes() == before
    assert not (tmp_path / "out.npy").exists()


def test_another_function_is_refused(source, tmp_path):
    again = begun(source, tmp_path, fn=lambda x: x * 3)
    with pytest.raises(ValueError, match=r"another job.*function was"):
        again()


@pytest.mark.parametrize(
    "damage", [b"", b"no resume file\n", b'{"dpmem_resume": 99, "facts": {}}\n', b"\x93NUMPY", b'{"dpm']
)
def test_what_is_no_resume_file(source, tmp_path, damage):
    (tmp_path / "r").write_bytes(damage)
    words = {"out": tmp_path / "out.npy", "resume": tmp_path / "r"}
    if damage not in (b"", b'{"dpm'):
        with pytest.raises(ValueError, match="no resume file"):
            dpmem.map_chunks(lambda x: x, source, **words)
        assert (tmp_path / "r").read_bytes() == damage
    else:
        assert np.array_equal(dpmem.map_chunks(lambda x: x, source, **words), np.load(source))


def test_a_partial_file_that_is_gone_or_different_is_refused(source, tmp_path):
    again = begun(source, tmp_path)
    partial = tmp_path / "out.npy.partial"
    content = partial.read_bytes()
    partial.write_bytes(content[:-8])
    with pytest.raises(ValueError, match="not what the interrupted job left"):
        again()
    partial.unlink()
    with pytest.raises(ValueError, match="is gone"):
        again()
    partial.write_bytes(content)
    assert np.array_equal(again(), np.load(source) * 2)


def test_a_partial_file_of_another_job_is_not_gone_on_with(source, tmp_path):
    """As one leaves it that was killed and had no resume file: of the right size, and empty where ours was done."""
    again = begun(source, tmp_path)
    partial = tmp_path / "out.npy.partial"
    ours = partial.read_bytes()
    other = _outputs.NpyFile(str(tmp_path / "out.npy"), dpmem.plan_chunks(lambda x: x, source)._form, ROWS)
    other.open(b"another".ljust(_outputs.TOKEN_BYTES))
    other._close()
    assert len(partial.read_bytes()) == len(ours)
    with pytest.raises(ValueError, match="not what the interrupted job left"):
        again()
    partial.write_bytes(ours)
    assert np.array_equal(again(), np.load(source) * 2)


@pytest.mark.parametrize("moment", ["replace", "fsync"])
def test_a_job_that_ended_while_its_file_got_its_name(source, tmp_path, monkeypatch, moment):
    def fn(x):
        return x + 1

    def dies(*_):
        raise Stop

    words = {"out": tmp_path / "out.npy", "rows": 100, "resume": tmp_path / "r"}
    with monkeypatch.context() as patched:
        patched.setattr(os, moment, dies)
        with pytest.raises(Stop):
            dpmem.map_chunks(fn, source, **words)
    told = []
    got = dpmem.map_chunks(fn, source, progress=lambda *how_far: told.append(how_far), **words)
    assert told == []
    assert got.tobytes() == (np.load(source) + 1).tobytes()
    assert sorted(os.listdir(tmp_path)) == ["out.npy", "source.npy"]
    assert (tmp_path / "out.npy").stat().st_size == 128 + got.nbytes


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_torn_record_costs_its_chunk_only(source, tmp_path, cut):
    again = begun(source, tmp_path, out=None, reduce="sum")
    journal = tmp_path / "r"
    whole = journal.read_bytes()
    journal.write_bytes(whole[: len(whole) - 1 - cut])
    expected = dpmem.map_chunks(lambda x: x * 2, source, rows=100, reduce="sum")
    assert again().tobytes() == expected.tobytes()
    assert not journal.exists()


def test_a_record_that_is_damaged_ends_the_file(source, tmp_path):
    again = begun(source, tmp_path, out=None, reduce="sum")
    journal = tmp_path / "r"
    damaged = bytearray(journal.read_bytes())
    damaged[-10] ^= 0x55
    journal.write_bytes(damaged)
    expected = dpmem.map_chunks(lambda x: x * 2, source, rows=100, reduce="sum")
    assert again().tobytes() == expected.tobytes()


def test_after_a_power_failure_only_what_was_synchronised_counts(source, tmp_path, monkeypatch):
    monkeypatch.setattr(_journal, "_SYNC_S", 0.0)
    again = begun(source, tmp_path)
    data = (tmp_path / "r").read_bytes()
    synced = data.rindex(b'"synced"')
    assert b'"done": 300' in data[:synced]
    # What came after the second synchronisation had not reached the disk.
    (tmp_path / "r").write_bytes(data[: data.index(b'"synced": 200') + 60])
    monkeypatch.setattr(_journal, "_boot", lambda: "another start of the machine")
    told = []
    got = again(progress=lambda done, total: told.append(done))
    assert told[0] == 300
    assert np.array_equal(got, np.load(source) * 2)


def test_without_a_synchronisation_a_power_failure_starts_the_job_anew(source, tmp_path, monkeypatch):
    again = begun(source, tmp_path)
    monkeypatch.setattr(_journal, "_boot", lambda: "another start of the machine")
    told = []
    assert np.array_equal(again(progress=lambda done, total: told.append(done)), np.load(source) * 2)
    assert told[0] == 100


def test_a_job_that_had_only_to_be_tidied_up(source, tmp_path):
    out = tmp_path / "out.npy"
    unlink = _journal.Journal.finish

    def dies(self):
        self.close()
        raise Stop

    def fn(x):
        return x + 1

    words = {"out": out, "reduce": "sum", "rows": 100, "resume": tmp_path / "r"}
    _journal.Journal.finish = dies
    try:
        with pytest.raises(Stop):
            dpmem.map_chunks(fn, source, **words)
    finally:
        _journal.Journal.finish = unlink
    assert sorted(os.listdir(tmp_path)) == ["out.npy", "r", "source.npy"]
    # Something else under that name is not the result.
    whole = out.read_bytes()
    out.write_bytes(whole[:-8])
    with pytest.raises(ValueError, match="is gone"):
        dpmem.map_chunks(fn, source, **words)
    out.write_bytes(whole)
    told = []
    total = dpmem.map_chunks(fn, source, progress=lambda *how_far: told.append(how_far), **words)
    assert told == []
    assert np.allclose(total, (np.load(source) + 1).sum(axis=0))
    assert sorted(os.listdir(tmp_path)) == ["out.npy", "source.npy"]


def test_arrays_in_memory_can_be_gone_on_with_in_this_process_only(source, tmp_path):
    target = np.zeros((ROWS, 7))
    again = begun(source, tmp_path, out=target)
    with pytest.raises(ValueError, match=r"another job.*address"):
        again(out=np.zeros((ROWS, 7)))
    assert again() is target
    assert np.array_equal(target, np.load(source) * 2)
    views = np.zeros((2 * ROWS, 7))
    again = begun(source, tmp_path, out=views[ROWS:])
    with pytest.raises(ValueError, match=r"another job.*address"):
        again(out=views[:ROWS])
    again(out=views[ROWS:])
    assert np.array_equal(views[ROWS:], np.load(source) * 2)


def test_an_array_at_the_address_of_one_that_is_gone_is_another(source, tmp_path):
    form = dpmem.plan_chunks(lambda x: x, source)._form
    room = bytearray(ROWS * 7 * 8)
    told = []
    for _ in range(2):
        target = np.frombuffer(room).reshape(ROWS, 7)
        told.append(_outputs.output(target, form, ROWS).describe())
        assert _outputs.output(target, form, ROWS).describe() == told[-1]
        del target
    assert told[0]["address"] == told[1]["address"]
    assert told[0] != told[1]


def test_of_memmaps_only_those_of_what_was_there_can_be_gone_on_with(source, tmp_path):
    file = tmp_path / "m.npy"
    form = dpmem.plan_chunks(lambda x: x, source)._form

    def facts(target):
        return _outputs.output(target, form, ROWS).describe()

    new = [facts(np.memmap(file, "f8", "w+", shape=(2 * ROWS, 7))[:ROWS]) for _ in range(2)]
    assert new[0] != new[1]
    assert new[0]["process"] == new[1]["process"]
    np.save(file, np.zeros((2 * ROWS, 7)))
    opened = [facts(np.load(file, mmap_mode="r+")[:ROWS]) for _ in range(2)]
    assert opened[0] == opened[1]
    assert opened[0]["offset"] == 128
    assert facts(np.load(file, mmap_mode="r+")[ROWS:])["offset"] == 128 + ROWS * 7 * 8
    assert "process" in facts(np.load(file, mmap_mode="c")[:ROWS])


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_output_that_was_made_anew_is_noticed(source, tmp_path, monkeypatch, order):
    monkeypatch.setattr(_journal, "_SYNC_S", 0.0)
    monkeypatch.setattr(_journal, "_COMPACT_BYTES", 800)
    file = tmp_path / "m.npy"

    def anew():
        return np.lib.format.open_memmap(file, "w+", "f8", (ROWS, 7), fortran_order=order == "F")

    again = begun(source, tmp_path, out=anew())
    written = file.read_bytes()
    with pytest.raises(ValueError, match="doesn't hold any more"):
        again(out=anew())
    file.write_bytes(written)
    assert np.array_equal(again(out=np.load(file, mmap_mode="r+")), np.load(source) * 2)


def test_what_is_another_function():
    def scaled(by, plus=0):
        return lambda x, more=plus: x * by + more

    def counted():
        count = 0

        def fn(x):
            nonlocal count
            count += 1
            return x

        return fn

    def recursive(x):
        return recursive(x[1:]) if len(x) else x

    tell = _fingerprint.fingerprint_of
    assert tell(recursive) == tell(recursive)
    assert tell(scaled(2)) == tell(scaled(2))

    class Model:
        def __call__(self, x):
            return x + 1

    class Other:
        def __call__(self, x):
            return x - 1

    Other.__qualname__ = Model.__qualname__
    assert tell(Model()) == tell(Model())
    others = [scaled(2), scaled(3), scaled(2, plus=1), dpnp.exp, dpnp.sqrt, Model(), Other()]
    others += [functools.partial(f, n) for f in (dpnp.add, scaled(2), scaled(3)) for n in (1, 2)]
    assert len({tell(fn) for fn in others}) == len(others)
    fn = counted()
    before = tell(fn)
    fn(0)
    assert tell(fn) == before, "what it changes itself"
    assert tell(print).startswith("print")
    assert tell(Stop()) == tell(Stop())


@pytest.mark.parametrize("after", [False, True])
def test_interrupted_before_the_first_chunk(source, tmp_path, monkeypatch, after):
    begin = _journal.Journal.begin

    def interrupted(self, *arguments):
        if after:
            begin(self, *arguments)
        raise KeyboardInterrupt

    def fn(x):
        return x + 1

    words = {"out": tmp_path / "out.npy", "resume": True}
    with monkeypatch.context() as patched:
        patched.setattr(_journal.Journal, "begin", interrupted)
        with pytest.raises(KeyboardInterrupt):
            dpmem.map_chunks(fn, source, **words)
    assert len(os.listdir(tmp_path)) == (3 if after else 1)
    assert np.array_equal(dpmem.map_chunks(fn, source, **words), np.load(source) + 1)
    assert sorted(os.listdir(tmp_path)) == ["out.npy", "source.npy"]


def test_a_reduction_on_the_host_goes_on_with_what_it_had(source, tmp_path):
    """Results that were NumPy's are not dpnp's after that, and can be written to."""
    plan = dpmem.plan_chunks(lambda x: dpnp.asnumpy(x.sum(axis=0)), source, reduce=np.add)
    left = [3]

    def fn(x):
        left[0] -= 1
        if left[0] < 0:
            raise Stop
        return dpnp.asnumpy(x.sum(axis=0))

    def added(a, b):
        assert isinstance(a, np.ndarray)
        assert isinstance(b, np.ndarray)
        a += b
        return a

    words = {"reduce": added, "rows": 100, "resume": tmp_path / "r", "plan": plan}
    with pytest.raises(Stop):
        dpmem.map_chunks(fn, source, **words)
    left[0] = 100
    assert np.allclose(dpmem.map_chunks(fn, source, **words), np.load(source).sum(axis=0))
    assert left[0] == 93


def test_a_resume_file_that_somebody_removed_costs_nothing(source, tmp_path):
    resume = tmp_path / "r"

    def removed(done, total):
        if done == total:
            resume.unlink()

    got = dpmem.map_chunks(lambda x: x, source, reduce="max", rows=100, resume=resume, progress=removed)
    assert np.array_equal(got, np.load(source).max(axis=0))


def test_the_file_is_written_anew_when_it_has_grown(source, tmp_path, monkeypatch):
    monkeypatch.setattr(_journal, "_SYNC_S", 0.0)
    monkeypatch.setattr(_journal, "_COMPACT_BYTES", 800)
    again = begun(source, tmp_path, out=None, reduce="sum")
    head, *records = (tmp_path / "r").read_bytes().split(b"\n", 1)
    assert json.loads(head)["facts"]["rows"] == ROWS
    assert b'"state": 300' in records[0]
    assert b'"done": 100' not in records[0]
    assert not (tmp_path / "r.dpmem-new").exists()
    expected = dpmem.map_chunks(lambda x: x * 2, source, rows=100, reduce="sum")
    assert again().tobytes() == expected.tobytes()


def test_a_file_that_can_not_be_written_anew_goes_on_as_it_was(source, tmp_path, monkeypatch):
    monkeypatch.setattr(_journal, "_SYNC_S", 0.0)
    monkeypatch.setattr(_journal, "_COMPACT_BYTES", 200)

    def failing(*_):
        raise OSError(errno.EACCES, "no")

    def fn(x):
        return x * 2

    words = {"reduce": "sum", "rows": 100, "resume": tmp_path / "r"}
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", failing)
        with pytest.raises(PermissionError):
            dpmem.map_chunks(fn, source, **words)
    told = []
    got = dpmem.map_chunks(fn, source, progress=lambda done, total: told.append(done), **words)
    assert told[0] > 100, "what was done is not done again"
    assert got.tobytes() == dpmem.map_chunks(fn, source, rows=100, reduce="sum").tobytes()
    assert os.listdir(tmp_path) == ["source.npy"]


def test_results_that_are_no_arrays_cannot_be_kept(source, tmp_path):
    with pytest.raises(TypeError, match="arrays or numbers"):
        dpmem.map_chunks(
            lambda x: float(x.sum()), source, rows=100, reduce=lambda a, b: {"a": a}, resume=tmp_path / "r"
        )


def test_a_resume_file_that_cannot_be_written_names_itself(source, tmp_path):
    for out in (None, tmp_path / "o.npy"):
        with pytest.raises(FileNotFoundError, match="missing"):
            dpmem.map_chunks(lambda x: x, source, out=out, reduce="sum", resume=tmp_path / "missing/r")
    assert os.listdir(tmp_path) == ["source.npy"]
