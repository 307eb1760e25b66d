"""What can be cut: each kind of source against NumPy, and what is refused, with its reason."""

import json
import os
import random

import numpy as np
import pytest

from dpmem._sources import ArraySource, FileSource, SlicedSource, open_source

DTYPES = ["?", "i1", "u2", "i4", "f2", "f4", "f8", "c8", "c16"]


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape, dtype=int))
    if dtype == "?":
        return rng.integers(0, 2, count).astype("?").reshape(shape)
    # Any bits, NaN and infinities among them: they must come through as they are.
    return np.frombuffer(rng.bytes(count * np.dtype(dtype).itemsize), dtype).reshape(shape)


class Sliceable:
    """As zarr and h5py have it: no NumPy array, and nothing but slicing."""

    def __init__(self, array):
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, index):
        return self._array[index].copy()


def saved(folder, name, array):
    np.save(folder / name, array)
    return folder / name


def of_kind(kind, array, folder):
    """The same values as a source of some kind."""
    if kind == "array":
        return array
    if kind == "file":
        return saved(folder, "a.npy", array)
    if kind == "memmap":
        return np.load(saved(folder, "a.npy", array), mmap_mode="r")
    if kind == "private memmap":
        return np.load(saved(folder, "a.npy", array), mmap_mode="c")
    if kind == "strided":
        wide = np.zeros((*array.shape, 2), array.dtype)
        wide[..., 1] = array
        return wide[..., 1]
    return Sliceable(array)


KINDS = ["array", "file", "memmap", "private memmap", "strided", "sliceable"]


def same(found, expected):
    native = expected.dtype.newbyteorder("=")
    assert (found.shape, found.dtype, found.flags.c_contiguous) == (expected.shape, native, True)
    assert found.tobytes() == np.ascontiguousarray(expected).astype(native).tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", "<>")
def test_any_rows_of_any_source_are_numpys(kind, order, endian, tmp_path):
    pick = random.Random(f"{kind}{order}{endian}")
    for round_ in range(12):
        dtype = pick.choice(DTYPES)
        shape = tuple(pick.choice([1, 2, 3, 7, 40]) for _ in range(pick.choice([1, 2, 2, 3, 4])))
        array = np.array(sample(shape, dtype, round_).astype(np.dtype(dtype).newbyteorder(endian)), order=order)
        axis = pick.randrange(len(shape))
        source = open_source(of_kind(kind, array, tmp_path), axis)
        assert (source.shape, len(source), source.nbytes) == (shape, shape[axis], array.nbytes)
        assert source.row_nbytes * len(source) == array.nbytes
        for _ in range(4):
            start, stop = sorted(pick.randrange(len(source) + 1) for _ in range(2))
            index = source.index(start, stop)
            same(source.read(start, stop), array[index])


@pytest.mark.parametrize("endian", "<>")
def test_joined_sources_read_across_their_seams(endian, tmp_path):
    pick = random.Random(endian)
    for round_ in range(20):
        shape = [pick.choice([1, 2, 5]) for _ in range(pick.choice([1, 2, 3]))]
        axis = pick.randrange(len(shape))
        pieces, sources = [], []
        for piece in range(pick.choice([2, 3, 6])):
            shape[axis] = pick.choice([0, 1, 4, 9])
            kind = pick.choice(KINDS)
            order = pick.choice("CF")
            # One byte order for all, or one each: what is delivered is native.
            stored = np.dtype("f4").newbyteorder(pick.choice([endian, "="]))
            pieces.append(np.array(sample(shape, "f4", 100 * round_ + piece).astype(stored), order=order))
            folder = tmp_path / f"{round_}-{piece}"
            folder.mkdir()
            sources.append(of_kind(kind, pieces[-1], folder))
        whole = np.concatenate([piece.astype("f4") for piece in pieces], axis)
        source = open_source(sources, axis)
        assert source.shape == whole.shape
        for _ in range(6):
            start, stop = sorted(pick.randrange(len(source) + 1) for _ in range(2))
            same(source.read(start, stop), whole[source.index(start, stop)])


def test_large_pieces_and_small_ones_far_apart(tmp_path):
    # Beyond one request of the reader, and beyond the gap that it reads over.
    array = sample((3, 3_000_000), "i4")
    path = saved(tmp_path, "a.npy", array)
    same(open_source(path).read(1, 3), array[1:3])
    same(open_source(path, 1).read(2_999_990, 3_000_000), array[:, 2_999_990:])
    same(open_source(path, 1).read(0, 2_999_999), array[:, :-1])


def test_files_are_read_as_files_and_memmaps_too_where_that_is_the_same(tmp_path):
    path = saved(tmp_path, "a.npy", np.arange(1000.0))
    assert isinstance(open_source(str(path)), FileSource)
    mapped = np.load(path, mmap_mode="r+")
    assert isinstance(open_source(mapped), FileSource)
    # A view begins elsewhere in the file.
    view = mapped[123:]
    mapped[124] = -1
    assert isinstance(open_source(view), FileSource)
    same(open_source(view).read(0, 5), np.array([123.0, -1, 125, 126, 127]))
    # What a private mapping changes is in no file.
    private = np.load(path, mmap_mode="c")
    private[3] = 77
    assert isinstance(open_source(private), ArraySource)
    assert open_source(private).read(3, 4) == [77]
    # And a file that took the name is not what the memmap shows.
    np.save(tmp_path / "b.npy", np.zeros(1000))
    os.replace(tmp_path / "b.npy", path)
    assert isinstance(open_source(mapped), ArraySource)
    assert open_source(mapped).read(5, 6) == [5]
    # Raw memmaps have no header.
    raw = np.memmap(tmp_path / "raw", "<i2", "w+", 64, (10, 3))
    raw[...] = np.arange(30).reshape(10, 3)
    assert isinstance(open_source(raw, 1), FileSource)
    same(open_source(raw, 1).read(1, 3), np.array(raw[:, 1:3]))


def test_patterns_take_files_in_the_order_of_their_names(tmp_path):
    for number in (3, 1, 2):
        saved(tmp_path, f"part-{number}.npy", np.full(2, number))
    same(open_source(f"{tmp_path}/part-*.npy").read(0, 6), np.array([1, 1, 2, 2, 3, 3]))
    (tmp_path / "deep").mkdir()
    saved(tmp_path / "deep", "x.npy", np.full(2, 9))
    assert len(open_source(f"{tmp_path}/**/*.npy")) == 8
    # A name that looks like a pattern and exists is a name.
    saved(tmp_path, "a[1].npy", np.full(2, 4))
    same(open_source(tmp_path / "a[1].npy").read(0, 2), np.array([4, 4]))
    with pytest.raises(FileNotFoundError, match="no file matches"):
        open_source(f"{tmp_path}/nothing-*.npy")
    with pytest.raises(FileNotFoundError, match=r"missing\.npy"):
        open_source(tmp_path / "missing.npy")


def test_npy_of_each_version(tmp_path):
    for version in [(1, 0), (2, 0), (3, 0)]:
        with open(tmp_path / "a.npy", "wb") as file:
            np.lib.format.write_array(file, np.arange(5), version)
        same(open_source(tmp_path / "a.npy").read(1, 4), np.arange(1, 4))


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros(3, [("a", "i4"), ("b", "f8")]), "records \\(a, b\\); pass one field"),
        (np.array([1, "x", None], object), "Python objects"),
        (np.array(["a"]), "text"),
        (np.array([b"a"]), "text"),
        (np.zeros(3, "V8"), "raw bytes"),
        (np.zeros(3, "M8[s]"), "dates"),
        (np.zeros(3, "m8[s]"), "time differences"),
        (np.zeros(3, np.longdouble), "16-byte"),
        (np.ma.masked_array([1, 2], [0, 1]), "lose its mask"),
    ],
)
def test_what_no_device_can_hold_is_refused(array, reason, tmp_path):
    with pytest.raises(TypeError, match=reason):
        open_source(array)
    if not isinstance(array, np.ma.MaskedArray):
        np.save(tmp_path / "a.npy", array, allow_pickle=True)
        with pytest.raises(TypeError, match=reason):
            open_source(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        (np.float64(3), ValueError, "0-dimensional"),
        (np.array(3.0), ValueError, "0-dimensional"),
        ([], ValueError, "no source"),
        ((), ValueError, "empty"),
        (7, TypeError, "got int"),
        ([1, 2], TypeError, "got int"),
        ((np.zeros(3), np.zeros(4)), ValueError, "has 3, .*has 4"),
        ([np.zeros((3, 2)), np.zeros((3, 4))], ValueError, "3 × 2 float64.*3 × 4 float64"),
        ([np.zeros(3), np.zeros(3, "f4")], ValueError, "float64.*float32"),
        ((np.zeros(3), (np.zeros(3), np.zeros(3))), TypeError, "another tuple"),
        ([(np.zeros(3), np.zeros(3))], TypeError, "zip lists"),
    ],
)
def test_what_makes_no_sense_says_why(source, error, text):
    with pytest.raises(error, match=text):
        open_source(source)


def test_axes():
    assert open_source(np.zeros((2, 3)), -1).axis == 1
    for axis in (2, -3):
        with pytest.raises(ValueError, match=f"no axis {axis}"):
            open_source(np.zeros((2, 3)), axis)


def test_damaged_files_are_told_when_they_are_opened(tmp_path):
    path = saved(tmp_path, "a.npy", np.arange(100.0))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    with pytest.raises(ValueError, match=rf"`{path}` is truncated: 100 float64 .* byte 928, it ends at byte 919"):
        open_source(path)
    for damaged in (
        b"",
        b"PK\3\4 a zip archive",
        whole[:20],
        b"\x93NUMPY\x09\x00" + whole[8:],
        whole[:7] + b"\1" + whole[8:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"`{path}` is no .npy file"):
            open_source(path)
    path.write_bytes(whole.replace(b"(100,), ", b"(9,-11),"))
    with pytest.raises(ValueError, match="says that it has 9 × -11 items"):
        open_source(path)
    with pytest.raises(IsADirectoryError):
        open_source(tmp_path)


def test_sliceables_that_lie_are_caught():
    class Lying(Sliceable):
        def __getitem__(self, index):
            return super().__getitem__(index)[:-1]

    with pytest.raises(ValueError, match="answered rows 1 to 3 with 1 float64, expected 2 float64"):
        open_source(Lying(np.zeros(5))).read(1, 3)
    strange = Sliceable(np.zeros(5))
    strange.dtype = "no dtype"
    with pytest.raises(TypeError, match="NumPy doesn't know"):
        open_source(strange)
    assert isinstance(open_source(Sliceable(np.zeros(5))), SlicedSource)


def test_masks_are_not_lost():
    # netCDF4 answers with masked arrays always, whether anything is masked or not.
    values = np.ma.masked_array(np.arange(6.0), np.arange(6) == 4)
    source = open_source(Sliceable(values))
    same(source.read(0, 4), np.arange(4.0))
    with pytest.raises(ValueError, match="rows 4 to 6 with masked values"):
        source.read(4, 6)


def test_arrays_that_are_on_a_device_are_sent_back():
    import dpnp

    with pytest.raises(TypeError, match="on a device already"):
        open_source(dpnp.zeros(3))


def test_reading_checks_its_arguments():
    source = open_source(np.zeros((4, 2)))
    assert open_source(source) is source
    for rows in [(-1, 2), (0, 5), (3, 2)]:
        with pytest.raises((IndexError, ValueError)):
            source.read(*rows)
    for wrong in (np.zeros((1, 2)), np.zeros((2, 2), "f4"), np.zeros((2, 2), order="F")):
        with pytest.raises(ValueError, match="expected a C-ordered buffer"):
            source.read_into(0, 2, wrong)


def test_zipped_sources_read_together(tmp_path):
    a, b = np.arange(12.0).reshape(6, 2), np.arange(6, dtype="i4")
    source = open_source((saved(tmp_path, "a.npy", a), b))
    first, second = source.read(2, 5)
    same(first, a[2:5])
    same(second, b[2:5])
    assert (len(source), source.row_nbytes, source.nbytes) == (6, 20, 120)


def test_a_fingerprint_changes_with_the_file_and_is_json(tmp_path):
    path = saved(tmp_path, "a.npy", np.arange(5.0))
    sources = [[path, np.zeros(2)], (path, np.zeros(5)), path]
    before = [json.loads(json.dumps(open_source(source).fingerprint())) for source in sources]
    assert before == [json.loads(json.dumps(open_source(source).fingerprint())) for source in sources]
    os.utime(path, ns=(1, 1))
    for old, source in zip(before, sources, strict=True):
        assert old != open_source(source).fingerprint()
