"""Where the rows of results go: a `.npy` file, or anything that takes slices.

A file is written under a name of its own, `NAME.npy.partial`, whose room is taken beforehand, and gets its name when it
is whole. So a file called `NAME.npy` is never half-written, and one that was there before stays until then.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import numpy

from dpmem._form import Form

#: What is added to the name of a file that is not whole.
SUFFIX = ".partial"


class Output:
    """Takes results of chunks in any order; each row once."""

    #: Whether `write` takes arrays of the device as they are.
    on_device = False

    def describe(self) -> dict[str, Any]:
        """What must be the same for a resumed job to go on, as plain data."""
        raise NotImplementedError

    def open(self, resumed: bool) -> None:
        """Begin, or go on with what an interrupted job has left."""

    def write(self, start: int, stop: int, result: Any) -> None:
        """Put the rows `start` to `stop` in place."""
        raise NotImplementedError

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
        self.path, self._partial = path, path + SUFFIX
        self._shape, self._dtype, self._axis = form.whole(rows), form.dtype, form.axis or 0
        self._header = _header(self._shape, self._dtype)
        self._begin = len(self._header)
        self._size = self._begin + _bytes(self._shape, self._dtype)
        self._file = -1
        self._map: numpy.memmap[Any, Any] | None = None

    def open(self, resumed: bool) -> None:
        """Make the file and take its room, or open what an interrupted job has left.

        Raises
        ------
        ValueError
            What is there can't be of that job.
        """
        flags = os.O_RDWR | os.O_CLOEXEC | (0 if resumed else os.O_CREAT | os.O_TRUNC)
        try:
            self._file = os.open(self._partial, flags, 0o666)
        except FileNotFoundError:
            if not resumed:
                raise
            raise ValueError(f"`{self._partial}` is gone; remove the resume file to begin anew") from None
        try:
            if resumed:
                self._check()
            else:
                self._make()
            if self._axis and self._size > self._begin:
                self._map = numpy.memmap(self._partial, self._dtype, "r+", self._begin, self._shape)
        except BaseException:
            self.abandon(keep=resumed)
            raise

    def _make(self) -> None:
        # Room first: a full disk is noticed before the work, and no write through the map can lack it.
        try:
            os.posix_fallocate(self._file, 0, self._size)
        except OSError as error:
            raise self._failed(error, 0, self._size) from None
        self._put(memoryview(self._header), 0)

    def _check(self) -> None:
        size = os.fstat(self._file).st_size
        if os.pread(self._file, self._begin, 0) != self._header or size != self._size:
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
        return not os.path.exists(self._partial) and os.path.exists(self.path)

    def abandon(self, keep: bool) -> None:
        """Close it; remove it unless a resumed job is to go on with it."""
        made = self._file >= 0
        self._close()
        if made and not keep:
            os.unlink(self._partial)

    def _close(self) -> None:
        self._map = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Slices(Output):
    """Anything with `shape` that takes slices: NumPy arrays, memmaps, dpnp arrays, zarr and h5py."""

    def __init__(self, target: Any, form: Form, rows: int) -> None:
        self._target, self._axis = target, form.axis or 0
        self.on_device = hasattr(type(target), "__sycl_usm_array_interface__")
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
        """Shape and type; for memory of this process also which, since it is gone with the process."""
        target = self._target
        facts = {"type": type(target).__qualname__, "shape": list(target.shape), "dtype": str(target.dtype)}
        if isinstance(target, numpy.memmap) and target.filename is not None:
            return {**facts, "file": os.path.abspath(target.filename), "offset": target.offset}
        if isinstance(target, numpy.ndarray):
            return {**facts, "process": _this_process(), "address": target.__array_interface__["data"][0]}
        if self.on_device:
            address = target.__sycl_usm_array_interface__["data"][0]
            return {**facts, "process": _this_process(), "address": address}
        for name in ("filename", "path", "name"):
            facts[name] = str(getattr(target, name, None))
        return facts

    def write(self, start: int, stop: int, result: Any) -> None:
        """Assign the slice."""
        self._target[_rows(start, stop, self._axis)] = result

    def sync(self) -> None:
        """Flush, where there is such a thing."""
        flush: Callable[[], object] | None = getattr(self._target, "flush", None)
        if flush is not None:
            flush()

    def finish(self) -> Any:
        """The target itself."""
        self.sync()
        return self._target


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
