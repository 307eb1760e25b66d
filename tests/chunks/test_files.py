"""Files that go, shrink or change while they are read: an error with the file and the offset, and no wrong data."""

import os

import dpnp
import numpy as np
import pytest
from test_sources import Sliceable

import dpmem

HEADER = 128


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "data.npy", np.arange(1000.0))
    return tmp_path / "data.npy"


def read_all(path, spoil, *, source=None):
    """The values that came, and the error; `spoil` is called in the first turn."""
    values, it = [], dpmem.chunks(path if source is None else source, 100, in_flight=1)

    def loop():
        for index, x in it:
            if index.start == 0:
                spoil()
            values.extend(dpnp.asnumpy(x).tolist())

    with pytest.raises(OSError) as caught:
        loop()
    assert values == list(range(len(values)))
    # It doesn't look as if it had come to its end.
    with pytest.raises(RuntimeError, match="have ended with"):
        next(it)
    return len(values), caught.value


def test_a_file_that_shrinks(path, way):
    def shrink():
        os.truncate(path, HEADER + 8 * 550)

    count, error = read_all(path, shrink)
    assert count == 500
    assert f"`{path}` at byte {HEADER + 8 * 550}: it ends at byte {HEADER + 8 * 550}" in str(error)


def test_a_file_that_is_replaced_or_removed_before_it_is_read(path, tmp_path, way):
    source = dpmem.chunks(path, 100).source
    np.save(tmp_path / "other.npy", np.zeros(1000))
    os.replace(tmp_path / "other.npy", path)
    it = dpmem.chunks(source, 100)
    with pytest.raises(OSError, match=rf"`{path}` at byte {HEADER}: another file has taken its place"):
        next(it)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"`{path}` to read at byte {HEADER}"):
        next(dpmem.chunks(source, 100))
    with pytest.raises(FileNotFoundError, match=rf"`{path}` to read at byte {HEADER + 8 * 500}"):
        source.read(500, 600)


def test_a_file_that_is_removed_and_made_anew_before_it_is_read(path, way):
    # Many file systems give the new file the inode of the old one.
    it, made = dpmem.chunks(path, 100), os.stat(path).st_mtime_ns
    # The clock of file systems goes in steps of some milliseconds.
    while os.stat(path).st_mtime_ns <= made:
        path.unlink()
        np.save(path, np.zeros(1000))
    with pytest.raises(OSError, match=rf"`{path}` at byte {HEADER}: another file has taken its place"):
        next(it)


def test_a_relative_path_is_of_the_folder_at_the_beginning(path, way, monkeypatch):
    monkeypatch.chdir(path.parent)
    it = dpmem.chunks(path.name, 500)
    monkeypatch.chdir("/")
    assert [float(x.sum()) for _, x in it] == [sum(range(500)), sum(range(500, 1000))]


def test_a_file_that_is_removed_while_it_is_read_is_read_to_its_end(path, way):
    found = []
    for _, x in dpmem.chunks(path, 100):
        if not found:
            path.unlink()
        found.extend(dpnp.asnumpy(x).tolist())
    assert found == list(range(1000))


def test_one_of_many_files_is_removed(tmp_path, way):
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.arange(400.0) + 400 * number)
    gone = tmp_path / "2.npy"
    count, error = read_all(tmp_path, gone.unlink, source=f"{tmp_path}/*.npy")
    # The chunk that reaches into it does not come at all.
    assert count == 800
    assert isinstance(error, FileNotFoundError)
    assert str(gone) in str(error)


def test_a_memmap_whose_file_shrinks_is_an_error_and_no_bus_error(path, way):
    mapped = np.load(path, mmap_mode="r")
    count, error = read_all(path, lambda: os.truncate(path, HEADER + 8 * 150), source=mapped)
    # Up to two chunks were read ahead before it shrank.
    assert count in (100, 200, 300)
    assert str(path) in str(error)


def test_what_a_sliceable_raises_goes_through(way):
    class Failing(Sliceable):
        def __getitem__(self, index):
            if index[0].start >= 6:
                raise KeyError("no such chunk")
            return super().__getitem__(index)

    found = []

    def loop():
        for _, x in dpmem.chunks(Failing(np.arange(9)), 3):
            found.append(dpnp.asnumpy(x).tolist())

    with pytest.raises(KeyError, match="no such chunk"):
        loop()
    assert found == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("raised", [StopIteration, KeyboardInterrupt])
def test_what_cuts_a_turn_short_does_not_look_like_the_end(raised, way):
    class Failing(Sliceable):
        def __getitem__(self, index):
            if index[0].start == 6:
                raise raised
            return super().__getitem__(index)

    it, found = dpmem.chunks(Failing(np.arange(9)), 3), []

    def loop():
        for _, x in it:
            found.append(dpnp.asnumpy(x).tolist())

    with pytest.raises(RuntimeError if raised is StopIteration else raised):
        loop()
    assert found == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(RuntimeError, match=f"have ended with {raised.__name__}"):
        next(it)


def test_more_files_than_a_process_may_open(tmp_path, way):
    import resource

    for number in range(120):
        np.save(tmp_path / f"{number:03}.npy", np.full(3, number))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 40, before[1]))
    try:
        found = [dpnp.asnumpy(x) for _, x in dpmem.chunks(f"{tmp_path}/*.npy", 9)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert np.concatenate(found).tolist() == [number for number in range(120) for _ in range(3)]
    assert len(os.listdir("/proc/self/fd")) <= opened
