"""What chunks are cut from: NumPy arrays, `.npy` files, memmaps, anything that can be sliced, and several of them.

A `Source` says what it holds without reading it, and reads any stretch of its axis as a C-ordered host array in
native byte order. Where the bytes lie in a file or in memory, it also says where (`blocks`), so that a thread of
Rust's can fetch them; anything else is sliced by the thread that asks.

Owns no device memory and starts no thread. Files are checked when a source is opened and again by whoever reads them.
"""

from __future__ import annotations

import glob
import math
import operator
import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpmem import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What `blocks` answers for each piece: where from (origin, offset, count, stride, bytes), where to (offset, stride),
#: the size of what must have its bytes reversed (0: nothing), and how to reorder it: item size, shape and the
#: strides to write with; None if it lies in C order.
Block = tuple[Any, int, int, int, int, int, int, int, "tuple[int, tuple[int, ...], tuple[int, ...]] | None"]

#: The largest item of each kind that a device computes with.
_LARGEST = {"b": 1, "i": 8, "u": 8, "f": 8, "c": 16}
_REFUSED = {
    "M": "dates; pass `.view('int64')`",
    "m": "time differences; pass `.view('int64')`",
    "S": "text",
    "U": "text",
    "T": "text",
    "V": "raw bytes",
    "O": "Python objects",
}


class Source:
    """Data with an axis to cut along.

    `shape` is that of the whole, `dtype` is the one delivered (native byte order), `name` is for messages.
    """

    def __init__(self, shape: Sequence[int], dtype: Any, axis: int, name: str) -> None:
        self.shape = tuple(int(extent) for extent in shape)
        if min(self.shape, default=0) < 0:
            raise ValueError(f"{name} says that it has {_extents(self.shape)} items")
        self.dtype = _deliverable(dtype, name)
        self.axis = _checked_axis(axis, self.shape, name)
        self.name = name

    def __len__(self) -> int:
        return self.shape[self.axis]

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole, as delivered."""
        return self.size * int(self.dtype.itemsize)

    @property
    def row_nbytes(self) -> int:
        """Bytes of one step along the axis."""
        return math.prod(self.chunk_shape(1)) * int(self.dtype.itemsize)

    @property
    def parts(self) -> tuple[Source, ...]:
        """The sources that are read together: this one, or all that are zipped."""
        return (self,)

    def chunk_shape(self, rows: int) -> tuple[int, ...]:
        """The shape of a chunk with so many rows."""
        return (*self.shape[: self.axis], rows, *self.shape[self.axis + 1 :])

    def index(self, start: int, stop: int) -> slice | tuple[slice, ...]:
        """What picks these rows out of an array of the whole's shape."""
        rows = slice(start, stop)
        return rows if self.axis == 0 else (*(slice(None),) * self.axis, rows)

    def read(self, start: int, stop: int) -> Any:
        """Rows `start` to `stop`: a new host array, C-ordered, native byte order; of zipped sources a tuple.

        Raises
        ------
        IndexError
            There are no such rows.
        OSError
            A file is gone, was replaced or has shrunk; the text names it and the offset.
        ValueError
            What a sliceable source answered isn't what its shape and dtype say.
        """
        target = np.empty(self.chunk_shape(stop - start), self.dtype)
        self.read_into(start, stop, target)
        return target

    def read_into(self, start: int, stop: int, target: Any) -> None:
        """As `read`, into a writable C-ordered array of the right shape and dtype."""
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"{self.name} has rows 0 to {len(self)}, not {start} to {stop}")
        wanted = self.chunk_shape(stop - start)
        if target.shape != wanted or target.dtype != self.dtype or not target.flags.c_contiguous:
            raise ValueError(f"expected a C-ordered buffer of {wanted} {self.dtype}, got {target.shape} {target.dtype}")
        self._fill(start, stop, target)

    def _fill(self, start: int, stop: int, target: Any) -> None:
        blocks = self.blocks(start, stop)
        assert blocks is not None
        _native.stream_fill(target.ctypes.data, target.nbytes, blocks)

    def blocks(self, start: int, stop: int, first: int = 0, rows: int | None = None) -> list[Block] | None:
        """Where these rows lie, to be put at row `first` of a buffer of `rows`; None if only slicing can tell."""
        raise NotImplementedError

    def fingerprint(self) -> Any:
        """What can be compared, as JSON, to see that this is the same data: files by path, size and time of change."""
        return {"shape": list(self.shape), "dtype": self.dtype.name, "axis": self.axis}

    def describe(self) -> str:
        """One line for messages."""
        return f"{self.name}: {_extents(self.shape)} {self.dtype.name}, {_native.human_size(self.nbytes)}"

    def __repr__(self) -> str:
        return f"<source {self.describe()}, cut along axis {self.axis}>"


class _Laid(Source):
    """Items that lie in a file or in memory one after the other, in C or Fortran order, in either byte order."""

    def __init__(
        self, shape: Sequence[int], dtype: Any, axis: int, name: str, *, origin: Any, offset: int, fortran: bool
    ) -> None:
        super().__init__(shape, dtype, axis, name)
        self._origin, self._offset = origin, offset
        self._swapped = 0 if np.dtype(dtype).isnative else self.dtype.itemsize // (2 if self.dtype.kind == "c" else 1)
        # With one extent that isn't 1 both orders are the same.
        self._fortran = fortran and sum(extent != 1 for extent in self.shape) > 1

    def blocks(self, start: int, stop: int, first: int = 0, rows: int | None = None) -> list[Block] | None:
        rows = stop - start if rows is None else rows
        item = self.dtype.itemsize
        before, after = math.prod(self.shape[: self.axis]), math.prod(self.shape[self.axis + 1 :])
        if start == stop or before * after == 0:
            return []
        target_offset, target_stride = first * after * item, rows * after * item
        # A file in Fortran order is one in C order with the axes the other way round.
        count, row = (after, before * item) if self._fortran else (before, after * item)
        shape = self.chunk_shape(stop - start)
        reorder = (item, shape, _strides(self.chunk_shape(rows), item)) if self._fortran else None
        where_from = (self._origin, self._offset + start * row, count, len(self) * row, (stop - start) * row)
        return [(*where_from, target_offset, target_stride, self._swapped, reorder)]


class FileSource(_Laid):
    """A `.npy` file, or the file behind a memmap."""

    def __init__(
        self, path: str, shape: Sequence[int], dtype: Any, axis: int, *, offset: int, fortran: bool, status: Any
    ) -> None:
        # The program may change its folder meanwhile.
        origin = _native.stream_file(os.path.abspath(path), status.st_dev, status.st_ino)
        super().__init__(shape, dtype, axis, f"`{path}`", origin=origin, offset=offset, fortran=fortran)
        self.path, self._status = path, status
        expected = offset + self.nbytes
        if status.st_size < expected:
            raise ValueError(
                f"`{path}` is truncated: {_extents(self.shape)} {np.dtype(dtype)} take it to byte {expected}, it ends "
                f"at byte {status.st_size}"
            )

    @classmethod
    def open(cls, path: str, axis: int) -> FileSource:
        """Read the header of a `.npy` file."""
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            shape, fortran, dtype = _header(file, path)
            offset = file.tell()
        return cls(path, shape, dtype, axis, offset=offset, fortran=fortran, status=status)

    def fingerprint(self) -> Any:
        status = self._status
        file = {"path": os.path.abspath(self.path), "size": status.st_size, "mtime_ns": status.st_mtime_ns}
        return {**super().fingerprint(), **file}


class ArraySource(_Laid):
    """A NumPy array in one piece."""

    def __init__(self, array: Any, axis: int) -> None:
        name = f"array of {_extents(array.shape)}"
        _deliverable(array.dtype, name)
        origin = _native.stream_memory(array.ctypes.data, array.nbytes, array)
        fortran = not array.flags.c_contiguous
        super().__init__(array.shape, array.dtype, axis, name, origin=origin, offset=0, fortran=fortran)


class SlicedSource(Source):
    """Anything with `shape`, `dtype` and slicing, zarr and h5py among it; read by the thread that asks."""

    def __init__(self, sliceable: Any, axis: int) -> None:
        name = f"{type(sliceable).__name__} of {_extents(sliceable.shape)}"
        try:
            dtype = np.dtype(sliceable.dtype)
        except TypeError:
            raise TypeError(f"{name} has a dtype that NumPy doesn't know: {sliceable.dtype!r}") from None
        super().__init__(sliceable.shape, dtype, axis, name)
        self._sliceable = sliceable

    def blocks(self, start: int, stop: int, first: int = 0, rows: int | None = None) -> list[Block] | None:
        return None

    def _fill(self, start: int, stop: int, target: Any) -> None:
        index = (*(slice(None),) * self.axis, slice(start, stop))
        found = self._sliceable[index]
        if np.ma.is_masked(found):
            # As netCDF4 has them.
            raise ValueError(f"{self.name} answered rows {start} to {stop} with masked values: fill them first")
        found = np.asarray(found)
        if found.shape != target.shape or found.dtype.newbyteorder("=") != target.dtype:
            raise ValueError(
                f"{self.name} answered rows {start} to {stop} with {_extents(found.shape)} {found.dtype}, "
                f"expected {_extents(target.shape)} {target.dtype}"
            )
        np.copyto(target, found)


class JoinedSource(Source):
    """Sources one after the other along the axis; chunks may reach from one into the next."""

    def __init__(self, pieces: list[Source]) -> None:
        first = pieces[0]
        for piece in pieces[1:]:
            same = piece.chunk_shape(0) == first.chunk_shape(0) and piece.dtype == first.dtype
            if not same:
                raise ValueError(
                    f"sources that are joined along axis {first.axis} must agree in dtype and all other extents: "
                    f"{first.describe()}; {piece.describe()}"
                )
        name = f"{first.name} and {len(pieces) - 1} more"
        rows = sum(map(len, pieces))
        super().__init__(first.chunk_shape(rows), first.dtype, first.axis, name)
        self._pieces = pieces
        self._starts = np.cumsum([0, *map(len, pieces)])

    def _covering(self, start: int, stop: int) -> list[tuple[Source, int, int, int]]:
        """Each piece that these rows lie in, with its own rows and the row of the whole at which they begin."""
        covering = []
        at = int(np.searchsorted(self._starts, start, side="right")) - 1
        while at < len(self._pieces) and self._starts[at] < stop:
            begin, end = int(self._starts[at]), int(self._starts[at + 1])
            low, high = max(start, begin), min(stop, end)
            if low < high:
                covering.append((self._pieces[at], low - begin, high - begin, low))
            at += 1
        return covering

    def blocks(self, start: int, stop: int, first: int = 0, rows: int | None = None) -> list[Block] | None:
        rows = stop - start if rows is None else rows
        found: list[Block] = []
        for piece, low, high, begin in self._covering(start, stop):
            blocks = piece.blocks(low, high, first + begin - start, rows)
            if blocks is None:
                return None
            found.extend(blocks)
        return found

    def _fill(self, start: int, stop: int, target: Any) -> None:
        if self.blocks(start, stop) is not None:
            super()._fill(start, stop, target)
            return
        for piece, low, high, begin in self._covering(start, stop):
            rows = slice(begin - start, begin - start + high - low)
            target[(*(slice(None),) * self.axis, rows)] = piece.read(low, high)

    def fingerprint(self) -> Any:
        return [piece.fingerprint() for piece in self._pieces]


class ZippedSource(Source):
    """Several sources, read together: `read` gives tuples. `shape` and `dtype` are those of the first."""

    def __init__(self, parts: tuple[Source, ...]) -> None:
        first = parts[0]
        for part in parts[1:]:
            if len(part) != len(first):
                raise ValueError(
                    f"sources that are zipped must be equally long along axis {first.axis}: "
                    f"{first.name} has {len(first)}, {part.name} has {len(part)}"
                )
        super().__init__(first.shape, first.dtype, first.axis, " with ".join(part.name for part in parts))
        self._parts = parts

    @property
    def parts(self) -> tuple[Source, ...]:
        return self._parts

    @property
    def size(self) -> int:
        return sum(part.size for part in self._parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    @property
    def row_nbytes(self) -> int:
        return sum(part.row_nbytes for part in self._parts)

    def read(self, start: int, stop: int) -> Any:
        return tuple(part.read(start, stop) for part in self._parts)

    def read_into(self, start: int, stop: int, target: Any) -> None:
        for part, buffer in zip(self._parts, target, strict=True):
            part.read_into(start, stop, buffer)

    def fingerprint(self) -> Any:
        return {"zipped": [part.fingerprint() for part in self._parts]}

    def describe(self) -> str:
        return " with ".join(part.describe() for part in self._parts)


def open_source(source: Any, axis: int = 0) -> Source:
    """Make a `Source` of what users pass; one that is a `Source` already is returned as it is.

    Parameters
    ----------
    source
        A NumPy array or memmap; the path of a `.npy` file; a pattern such as `"part-*.npy"`, whose files are taken in
        the order of their names; a list of any of these, joined along `axis`; anything else with `shape`, `dtype`
        and slicing; or a tuple of sources, which are zipped.
    axis
        The axis to cut along.

    Raises
    ------
    FileNotFoundError
        There is no such file, or none that matches.
    ValueError
        A file is no `.npy` file or is truncated; sources don't fit together; there is no such axis.
    TypeError
        A device can't hold such items (objects, text, records), or `source` is nothing of the above.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, tuple):
        return _zipped(source, axis)
    if isinstance(source, list):
        return _joined([open_source(piece, axis) for piece in source], "the list")
    if isinstance(source, (str, os.PathLike)):
        return _opened(os.fsdecode(source), axis)
    if isinstance(source, np.ndarray):
        return _of_array(source, axis)
    if hasattr(type(source), "__sycl_usm_array_interface__"):
        raise TypeError(f"{type(source).__name__} is on a device already: slice it there")
    if all(hasattr(source, name) for name in ("shape", "dtype", "__getitem__")):
        return SlicedSource(source, axis)
    raise TypeError(
        "expected an array, the path of a .npy file, a list of them, a tuple of sources, or an object with shape, "
        f"dtype and slicing, got {type(source).__name__}"
    )


def _zipped(sources: tuple[Any, ...], axis: int) -> Source:
    if not sources:
        raise ValueError("the tuple of sources is empty")
    parts = tuple(open_source(source, axis) for source in sources)
    for part in parts:
        if isinstance(part, ZippedSource):
            raise TypeError("a tuple of sources can't hold another tuple")
    return ZippedSource(parts)


def _joined(pieces: list[Source], name: str) -> Source:
    if not pieces:
        raise ValueError(f"{name} holds no source")
    for piece in pieces:
        if isinstance(piece, ZippedSource):
            raise TypeError("a list of sources can't hold tuples: zip lists instead")
    return pieces[0] if len(pieces) == 1 else JoinedSource(pieces)


def _opened(path: str, axis: int) -> Source:
    if glob.has_magic(path) and not os.path.exists(path):
        files = sorted(glob.glob(path, recursive=True))
        if not files:
            raise FileNotFoundError(f"no file matches `{path}`")
        return _joined([FileSource.open(file, axis) for file in files], path)
    return FileSource.open(path, axis)


def _of_array(array: Any, axis: int) -> Source:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array would lose its mask on a device: pass `.filled(...)`")
    if isinstance(array, np.memmap):
        found = _behind(array)
        if found is not None:
            path, offset, status = found
            fortran = not array.flags.c_contiguous
            return FileSource(path, array.shape, array.dtype, axis, offset=offset, fortran=fortran, status=status)
    plain = np.asarray(array)
    if plain.flags.c_contiguous or plain.flags.f_contiguous:
        return ArraySource(plain, axis)
    return SlicedSource(plain, axis)


def _behind(array: Any) -> tuple[str, int, Any] | None:
    """The file that a memmap shows, and the offset of its first item there; None unless reading the file is the same.

    It isn't for a private mapping, nor if another file has the name by now.
    """
    mapping, path = getattr(array, "_mmap", None), array.filename
    if mapping is None or path is None or array.mode not in ("r", "r+", "w+"):
        return None
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        return None
    address = int(array.ctypes.data)
    try:
        status = os.stat(path)
        with open("/proc/self/maps") as maps:
            lines = [line.split(maxsplit=5) for line in maps]
    except OSError:
        return None
    for line in lines:
        low, high = (int(end, 16) for end in line[0].split("-"))
        if low <= address and address + array.nbytes <= high:
            major, minor = (int(number, 16) for number in line[3].split(":"))
            same = (os.makedev(major, minor), int(line[4])) == (status.st_dev, status.st_ino)
            return (str(path), int(line[2], 16) + address - low, status) if same else None
    return None


def _header(file: Any, path: str) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, order and dtype from the header of a `.npy` file; the file is left where the data begin."""
    layout = cast("Any", np.lib.format)
    try:
        version = layout.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"version {version[0]}.{version[1]} of the format is not known")
        # Version 3 differs from 2 in the encoding of field names only, and what has fields is refused.
        read = layout.read_array_header_1_0 if version == (1, 0) else layout.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except ValueError as problem:
        raise ValueError(f"`{path}` is no .npy file: {problem}") from None
    return shape, fortran, dtype


def _deliverable(dtype: Any, name: str) -> Any:
    """The dtype in native byte order, if devices know such items."""
    dtype = np.dtype(dtype)
    reason = _REFUSED.get(dtype.kind)
    if dtype.fields is not None:
        reason = f"records ({', '.join(dtype.fields)}); pass one field at a time"
    elif dtype.itemsize > _LARGEST.get(dtype.kind, 0) and reason is None:
        reason = f"{dtype.itemsize}-byte floating-point numbers; convert to a narrower dtype"
    if reason is not None:
        raise TypeError(f"{name} holds {dtype}, which no device can compute with: {reason}")
    return dtype.newbyteorder("=")


def _checked_axis(axis: int, shape: tuple[int, ...], name: str) -> int:
    if not shape:
        raise ValueError(f"{name} is 0-dimensional: there is no axis to cut along")
    axis = whole_number("axis", axis)
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"{name} has {len(shape)} dimensions, so there is no axis {axis}")
    return axis % len(shape)


def whole_number(name: str, value: Any) -> int:
    """An argument as Python's own integer: NumPy's narrow ones overflow when they are added up."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"expected a whole number for {name}, got {value!r}") from None


def _strides(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    """Bytes from one item to the next along each axis, in C order."""
    strides, step = [], item
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _extents(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape)) if len(shape) else "no dimensions"
