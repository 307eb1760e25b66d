"""Where the rows of results go: a `.npy` file, or anything that takes slices.

A file is written under a name of its own, `NAME.npy.partial`, whose room is taken beforehand, and gets its name when it
is whole. So a file called `NAME.npy` is never half-written, and one that was there before stays until then.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import weakref
import zlib
from collections.abc import Callable
from typing import Any

import numpy

from dpmem._form import Form

#: A partial file ends with so many bytes of its job's, so that no job goes on with another's.
TOKEN_BYTES = 16
#: What is added to the name of a file that is not whole.
SUFFIX = ".partial"


class Output:
    """Takes results of chunks in any order; each row once."""

    def takes(self, result: Any) -> bool:
        """Whether `write` takes this array as it is, though it is on the device."""
        return False

    def describe(self) -> dict[str, Any]:
        """What must be the same for a resumed job to go on, as plain data."""
        raise NotImplementedError

    def open(self, token: bytes, *, resumed: bool = False, complete: bool = False) -> None:
        """Begin, or go on with what an interrupted job has left, with all rows written if it was `complete`."""

    def write(self, start: int, stop: int, result: Any) -> None:
        """Put the rows `start` to `stop` in place."""
        raise NotImplementedError

    def mark(self, stop: int, result: Any) -> int | None:
        """What tells later whether the row before `stop`, the last one of this result, is still there; if anything."""
        return None

    def still_has(self, stop: int, mark: int | None) -> bool:
        """Whether it is, as far as a mark tells."""
        return True

    def sync(self) -> None:
        """See to it that what has been written outlives a power failure, as far as the output can."""

    def is_whole(self) -> bool:
        """Whether an earlier job has finished it already."""
        return False

    def finish(self) -> Any:
        """All rows are there; the result for the user."""
        raise NotImplementedError

    def abandon(self, keep: bool) -> None:
        """The job has ended too early; what is there is kept for a resumed one, or thrown away."""


class NpyFile(Output):
    """A `.npy` file."""

    def __init__(self, path: str, form: Form, rows: int) -> None:
        # The program may change its folder meanwhile.
        self.path = os.path.abspath(path)
        self._partial = self.path + SUFFIX
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._shape, self._dtype, self._axis = form.whole(rows), form.dtype, form.axis or 0
        self._header = _header(self._shape, self._dtype)
        self._begin = len(self._header)
        self._size = self._begin + _bytes(self._shape, self._dtype)
        self._file, self._token = -1, b""
        self._map: numpy.memmap[Any, Any] | None = None

    def open(self, token: bytes, *, resumed: bool = False, complete: bool = False) -> None:
        """Make the file and take its room, or open what an interrupted job has left.

        Raises
        ------
        ValueError
            What is there can't be of that job.
        BlockingIOError
            Another job is writing it.
        """
        self._token = token
        try:
            self._lock(resumed)
        except BaseException:
            # It may be another job's.
            self._close()
            raise
        try:
            if resumed:
                self._check(complete)
            else:
                self._make()
            if self._axis and self._size > self._begin:
                self._map = numpy.memmap(self._partial, self._dtype, "r+", self._begin, self._shape)
        except BaseException:
            self.abandon(keep=resumed)
            raise

    def _lock(self, resumed: bool) -> None:
        """Open the partial file, which no other job has open."""
        flags = os.O_RDWR | os.O_CLOEXEC | (0 if resumed else os.O_CREAT)
        while True:
            try:
                self._file = os.open(self._partial, flags, 0o666)
            except FileNotFoundError:
                if not resumed:
                    raise
                raise ValueError(f"`{self._partial}` is gone; remove the resume file to begin anew") from None
            lock(self._file, self._partial)
            with contextlib.suppress(FileNotFoundError):
                # Not if another job has finished it meanwhile: then it is somebody's result.
                if os.path.samestat(os.fstat(self._file), os.stat(self._partial)):
                    return
            self._close()

    def _make(self) -> None:
        # Room first: a full disk is noticed before the work, and no write through the map can lack it.
        room = self._size + TOKEN_BYTES
        try:
            os.ftruncate(self._file, 0)
            os.posix_fallocate(self._file, 0, room)
        except OSError as error:
            raise self._failed(error, 0, room) from None
        self._put(memoryview(self._header), 0)
        self._put(memoryview(self._token), self._size)

    def _check(self, complete: bool) -> None:
        found = os.pread(self._file, self._begin, 0), os.fstat(self._file).st_size - self._size
        token = os.pread(self._file, TOKEN_BYTES, self._size)
        # A job that had all rows may have cut the token off, but not renamed it.
        if found != (self._header, len(token)) or not (token == self._token or (complete and not token)):
            raise ValueError(f"`{self._partial}` is not what the interrupted job left behind; remove it to begin anew")

    def describe(self) -> dict[str, Any]:
        """Path, shape and type."""
        path, shape = os.path.abspath(self.path), list(self._shape)
        return {"file": path, "shape": shape, "dtype": self._dtype.str, "axis": self._axis}

    def write(self, start: int, stop: int, result: Any) -> None:
        """Write through the file where rows lie together, else through a map of it."""
        array = numpy.ascontiguousarray(result, self._dtype)
        if self._map is not None:
            self._map[_rows(start, stop, self._axis)] = array
        elif array.size:
            row_bytes = _bytes(self._shape[1:], self._dtype)
            self._put(array.data.cast("B"), self._begin + start * row_bytes)

    def _put(self, data: memoryview, offset: int) -> None:
        while data:
            try:
                written = os.pwrite(self._file, data, offset)
                if written == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as error:
                raise self._failed(error, offset, len(data)) from None
            data, offset = data[written:], offset + written

    def _failed(self, error: OSError, offset: int, size: int) -> OSError:
        number = error.errno or errno.EIO
        return OSError(number, f"{os.strerror(number)} while writing {size} bytes at offset {offset} of", self._partial)

    def sync(self) -> None:
        """Have the kernel write it to the disk."""
        if self._file < 0:
            return
        if self._map is not None:
            self._map.flush()
        try:
            os.fdatasync(self._file)
        except OSError as error:
            raise self._failed(error, 0, self._size) from None

    def finish(self) -> Any:
        """Give the file its name."""
        if self._file < 0:
            return self.whole()
        os.ftruncate(self._file, self._size)
        self.sync()
        os.replace(self._partial, self.path)
        self._close()
        folder = os.open(os.path.dirname(self.path) or ".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return self.whole()

    def whole(self) -> Any:
        """The finished file as an array that is read when it is used."""
        return numpy.load(self.path, mmap_mode="r" if self._size > self._begin else None)

    def is_whole(self) -> bool:
        """Whether an earlier job came as far as giving the file its name."""
        if os.path.exists(self._partial):
            return False
        try:
            with open(self.path, "rb") as file:
                return (file.read(self._begin), os.fstat(file.fileno()).st_size) == (self._header, self._size)
        except FileNotFoundError:
            return False

    def abandon(self, keep: bool) -> None:
        """Close it; remove it unless a resumed job is to go on with it."""
        if self._file >= 0 and not keep:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._partial)
        self._close()

    def _close(self) -> None:
        self._map = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Slices(Output):
    """Anything with `shape` that takes slices: NumPy arrays, memmaps, dpnp arrays, zarr and h5py."""

    def __init__(self, target: Any, form: Form, rows: int) -> None:
        self._target, self._axis = target, form.axis or 0
        self._on_device = hasattr(type(target), "__sycl_usm_array_interface__")
        wanted, shape = form.whole(rows), getattr(target, "shape", None)
        if not hasattr(type(target), "__setitem__") or shape is None:
            raise TypeError(
                "expected out= as the path of a .npy file or something with a shape that takes slices, "
                f"got {type(target).__name__}"
            )
        if tuple(shape) != wanted:
            raise ValueError(f"expected out= of shape {wanted}, got {tuple(shape)}")
        dtype = getattr(target, "dtype", None)
        if dtype is not None and not numpy.can_cast(form.dtype, dtype, "same_kind"):
            raise TypeError(f"expected out= to hold {form.dtype}, got {dtype}")

    def describe(self) -> dict[str, Any]:
        """Shape and type; for memory of this process also which, since it is gone with the process.

        A memmap that was made anew (`w+`) or keeps what is written to itself (`c`) counts as such.
        """
        target = self._target
        dtype = str(getattr(target, "dtype", None))
        facts: dict[str, Any] = {"type": type(target).__qualname__, "shape": list(target.shape), "dtype": dtype}
        if isinstance(target, numpy.ndarray):
            root, address = _root(target), target.__array_interface__["data"][0]
            facts["strides"] = list(target.strides)
            if isinstance(root, numpy.memmap) and root.filename is not None and root.mode == "r+":
                offset = root.offset + address - root.__array_interface__["data"][0]
                return {**facts, "file": os.path.abspath(root.filename), "offset": offset}
            return {**facts, "process": _this_process(), "address": address, "array": _mark(root)}
        if self._on_device:
            address = target.__sycl_usm_array_interface__["data"][0]
            return {**facts, "process": _this_process(), "address": address}
        for name in ("filename", "path", "name"):
            facts[name] = str(getattr(target, name, None))
        return facts

    def takes(self, result: Any) -> bool:
        """Where both are of one queue."""
        return self._on_device and getattr(result, "sycl_queue", None) == self._target.sycl_queue

    def write(self, start: int, stop: int, result: Any) -> None:
        """Assign the slice."""
        self._target[_rows(start, stop, self._axis)] = result

    def mark(self, stop: int, result: Any) -> int | None:
        """The row's checksum: who makes the output anew before each call would lose what was there."""
        is_comparable = getattr(result, "dtype", None) == getattr(self._target, "dtype", None)
        if self._on_device or not is_comparable or not hasattr(type(self._target), "__getitem__"):
            return None
        last = result.shape[self._axis]
        return zlib.crc32(numpy.ascontiguousarray(result[_rows(last - 1, last, self._axis)]).tobytes())

    def still_has(self, stop: int, mark: int | None) -> bool:
        """Read it back."""
        if mark is None:
            return True
        row = numpy.ascontiguousarray(self._target[_rows(stop - 1, stop, self._axis)])
        return zlib.crc32(row.tobytes()) == mark

    def sync(self) -> None:
        """Flush, where there is such a thing."""
        flush: Callable[[], object] | None = getattr(self._target, "flush", None)
        if flush is not None:
            flush()

    def finish(self) -> Any:
        """The target itself."""
        self.sync()
        return self._target


def lock(file: int, path: str) -> None:
    """Keep other jobs from an open file until it is closed.

    Raises
    ------
    BlockingIOError
        Another job has it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(errno.EWOULDBLOCK, "another job is writing this file", path) from None
    except OSError:
        pass  # a file system without locks


def path_of(out: Any) -> str | None:
    """The path that `out` names, if it is one.

    Raises
    ------
    ValueError
        It is the path of something else than a `.npy` file.
    """
    if not isinstance(out, (str, os.PathLike)):
        return None
    path = os.fspath(out)
    if not isinstance(path, str) or not path.endswith(".npy"):
        raise ValueError(f"expected the path of a .npy file to write, got {path!r}")
    return path


def output(out: Any, form: Form, rows: int) -> Output:
    """The output that `out` means; nothing is made before it is opened.

    Raises
    ------
    ValueError, TypeError
        Results have no rows to be written, or `out` can't take them.
    """
    if form.kind != "rows":
        what = {
            "fixed": f"has no rows of its own (shape {form.shape}, whatever the chunk)",
            "varying": "has a number of rows that depends on the data or is not the chunk's",
        }[form.kind]
        raise ValueError(
            f"out= takes one row for each row of the source, but the function's result {what}; try reduce="
        )
    path = path_of(out)
    return Slices(out, form, rows) if path is None else NpyFile(path, form, rows)


def _root(array: Any) -> Any:
    """The array whose memory a view shows."""
    while isinstance(array.base, numpy.ndarray):
        array = array.base
    return array


#: Arrays by their id, which is another's once they are gone, and what is said of them.
_marks: dict[int, tuple[Any, str]] = {}


def _mark(array: Any) -> str:
    """Tells an array from a later one at the same address."""
    key = id(array)
    if key not in _marks:
        _marks[key] = (weakref.ref(array, lambda _: _marks.pop(key, None)), os.urandom(8).hex())
    return _marks[key][1]


def _rows(start: int, stop: int, axis: int) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


def _bytes(shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> int:
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    return size


def _header(shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> bytes:
    import io

    buffer = io.BytesIO()
    facts = {"descr": numpy.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    numpy.lib.format.write_array_header_1_0(buffer, facts)
    return buffer.getvalue()


def _this_process() -> str:
    """The process, told apart from a later one of the same number."""
    with open("/proc/self/stat") as stat:
        return f"{os.getpid()} {stat.read().rpartition(')')[2].split()[19]}"
