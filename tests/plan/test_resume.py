"""Jobs that end too early: what they leave, and that the next one comes to the same."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpmem
from dpmem import _journal

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


@pytest.mark.parametrize("damage", [b"", b"no resume file\n", b'{"dpmem_resume": 99, "facts": {}}\n', b"\x93NUMPY"])
def test_what_is_no_resume_file(source, tmp_path, damage):
    (tmp_path / "r").write_bytes(damage)
    words = {"out": tmp_path / "out.npy", "resume": tmp_path / "r"}
    if damage:
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


def test_the_file_is_written_anew_when_it_has_grown(source, tmp_path, monkeypatch):
    monkeypatch.setattr(_journal, "_SYNC_S", 0.0)
    monkeypatch.setattr(_journal, "_COMPACT_BYTES", 800)
    again = begun(source, tmp_path, out=None, reduce="sum")
    head, *records = (tmp_path / "r").read_bytes().split(b"\n", 1)
    assert json.loads(head)["facts"]["rows"] == ROWS
    assert b'"state": 300' in records[0]
    assert b'"done": 100' not in records[0]
    assert not (tmp_path / "r.new").exists()
    expected = dpmem.map_chunks(lambda x: x * 2, source, rows=100, reduce="sum")
    assert again().tobytes() == expected.tobytes()


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
