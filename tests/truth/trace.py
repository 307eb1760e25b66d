"""Reads what the runtime itself says about its memory: the output of `SYCL_UR_TRACE=2`.

The runtime prints two lines for each Unified Runtime call, to stdout and in whole lines: `---> urX` when it
begins and `<--- urX(.name = value, …) -> UR_RESULT_…;` when it is over. Nothing here shares code with dpmem.

Invariants:
- Nothing is guessed. A line that looks like the trace's and cannot be read, a call that moves or makes memory
  and is not modelled, and a free of a pointer that was never allocated raise `TraceError`.
- Text that is not the trace's (the program's own output) is kept, byte for byte, in `Truth.output`.
- Threads: an ending line appears some time after the call's effect, so another thread can print the reuse of
  a pointer before the line of its free. The reuse proves that the free has happened: it is applied there, its
  own line then changes nothing, and `Truth.settled_frees` counts these. Only the order, hence the peak, can
  be off.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

BEGIN_MARK = "<<< dpmem begin >>>"
REPORT_MARK = "<<< dpmem report >>>"
KINDS = ("device", "host", "shared")

_ALLOCATIONS = {"urUSMDeviceAlloc": "device", "urUSMHostAlloc": "host", "urUSMSharedAlloc": "shared"}
_COPIES = {"urEnqueueUSMMemcpy", "urEnqueueUSMMemcpy2D"}
_BUFFER_TRANSFERS = {
    "urEnqueueMemBufferRead": "device_to_host",
    "urEnqueueMemBufferReadRect": "device_to_host",
    "urEnqueueMemBufferWrite": "host_to_device",
    "urEnqueueMemBufferWriteRect": "host_to_device",
    "urEnqueueMemBufferCopy": "device_to_device",
    "urEnqueueMemBufferCopyRect": "device_to_device",
}
_HARMLESS = {
    "urUSMGetMemAllocInfo",
    "urMemRelease",
    "urMemRetain",
    "urMemGetInfo",
    "urMemGetNativeHandle",
    "urEnqueueUSMFill",
    "urEnqueueUSMFill2D",
    "urEnqueueUSMPrefetch",
    "urEnqueueUSMAdvise",
    "urEnqueueMemBufferFill",
    "urEnqueueMemBufferMap",
    "urEnqueueMemUnmap",
    "urMemBufferPartition",
}
_MODELLED = {"urUSMFree", "urMemBufferCreate", *_ALLOCATIONS, *_COPIES, *_BUFFER_TRANSFERS}
# whatever can create, release or move memory; a name that matches and is in neither set above is an error
_MEMORY_CALL = re.compile(
    r"ur(USM|Mem|EnqueueUSM|EnqueueMem|VirtualMem|PhysicalMem|BindlessImages|CommandBufferAppendUSM)"
)

_TRACE_LINE = re.compile(r"   (?P<arrow>--->|<---) (?P<name>ur[A-Z]\w*)(?P<rest>.*)$")
_ENDING = re.compile(r"\((?P<arguments>.*)\) -> (?P<result>UR_RESULT_\w+);$")
_POINTER = re.compile(r"0x[0-9a-f]+|nullptr")
_POINTEE = re.compile(r"0x[0-9a-f]+ \((0x[0-9a-f]+|nullptr)\)")
_REGION = re.compile(r"\.width = (\d+), \.height = (\d+), \.depth = (\d+)")


class TraceError(Exception):
    """The trace says something that this reader cannot account for."""


@dataclass
class KindTotals:
    """What happened to the USM of one kind."""

    alloc_count: int = 0
    allocated_bytes: int = 0
    free_count: int = 0
    freed_bytes: int = 0
    failed_count: int = 0
    current_bytes: int = 0
    current_count: int = 0
    peak_bytes: int = 0
    peak_count: int = 0


@dataclass
class Amount:
    """How often, and how many bytes in all."""

    count: int = 0
    bytes: int = 0

    def add(self, size: int) -> None:
        self.count += 1
        self.bytes += size


@dataclass
class Truth:
    """What the runtime did between the two marks (or in the whole trace where there are none)."""

    kinds: dict[str, KindTotals] = field(default_factory=lambda: {kind: KindTotals() for kind in KINDS})
    rows: dict[tuple[str, str], KindTotals] = field(default_factory=dict)  # by device handle and kind, host left out
    peak_bytes: int = 0  # the largest sum over all kinds
    memcpy: Amount = field(default_factory=Amount)
    buffer_creates: Amount = field(default_factory=Amount)  # those that take their content from a host pointer
    buffer_reads: Amount = field(default_factory=Amount)
    buffer_writes: Amount = field(default_factory=Amount)
    transfers: dict[str, Amount] = field(default_factory=dict)  # by direction; host to host is left out
    contexts: set[str] = field(default_factory=set)  # handles that USM was allocated in
    devices: set[str] = field(default_factory=set)
    partitioned: bool = False  # sub-devices were made, at any time: handles that are no devices of their own
    calls: Counter[str] = field(default_factory=Counter)
    settled_frees: int = 0  # frees that a reuse of their pointer proved before their own line came
    overlaps: int = 0  # allocations and frees that were under way at once: the order of their lines is not certain
    open_calls: dict[str, int] = field(default_factory=dict)  # memory calls that had begun and not ended at the cut
    output: str = ""  # everything in the stream that is not the trace's


def read_trace(lines: Iterable[str], *, marks: bool = False) -> Truth:
    """Account for a whole stream; with `marks`, only for what lies between `BEGIN_MARK` and `REPORT_MARK`.

    The program's own output is collected from the whole stream in either case.
    """
    reader = _Reader()
    output: list[str] = []
    seen: list[str] = []
    truth = None
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\n")
        mark = next((m for m in (BEGIN_MARK, REPORT_MARK) if text.endswith(m)), None)
        try:
            if mark is not None:
                output.append(text[: -len(mark)])
                seen.append(mark)
                if mark == BEGIN_MARK:
                    reader.restart()
                elif truth is None:
                    truth = reader.cut()
                continue
            own = reader.line(text)
        except TraceError as error:
            raise TraceError(f"line {number}: {error}: `{text[:300]}`") from None
        output.append(line if own is None else own)
    if marks:
        if seen != [BEGIN_MARK, REPORT_MARK]:
            raise TraceError(f"expected one begin mark and one report mark, found {seen}")
    else:
        if seen:
            raise TraceError(f"found marks that were not asked for: {seen}")
        truth = reader.cut()
    assert truth is not None
    truth.output = "".join(output)
    return truth


class _Reader:
    """The state while reading: live blocks, calls under way, and what has been counted so far."""

    def __init__(self) -> None:
        self.truth = Truth()
        self.finished = False
        self.partitioned = False
        self.starts: list[int] = []  # addresses of live blocks, sorted
        self.blocks: dict[int, tuple[int, str, str]] = {}  # address -> size, kind, device ("" for host memory)
        self.settled: Counter[int] = Counter()  # addresses whose free has been applied and whose line is to come
        self.open: Counter[str] = Counter()

    def restart(self) -> None:
        """The begin mark: dpmem's own probe blocks are behind us and must be gone."""
        if self.blocks:
            raise TraceError(f"{len(self.blocks)} blocks are live at the begin mark, expected none")
        self.truth = Truth()

    def cut(self) -> Truth:
        self.finished = True
        self.truth.partitioned = self.partitioned
        self.truth.open_calls = {n: c for n, c in self.open.items() if c and _MEMORY_CALL.match(n)}
        return self.truth

    def line(self, text: str) -> str | None:
        """Take one line; the part that is the program's own, or None if all of it is."""
        found = _TRACE_LINE.search(text)
        if found is None:
            if re.search(r"(--->|<---) ur[A-Z]|-> UR_RESULT_", text):
                raise TraceError("looks like a part of the trace, cannot be read")
            return None
        own = text[: found.start()]
        if self.finished:
            return own
        name, rest = found["name"], found["rest"]
        if found["arrow"] == "--->":
            if rest:
                raise TraceError("unexpected text after the beginning of a call")
            self.open[name] += 1
            if name in _ALLOCATIONS:
                self.truth.overlaps += self.open["urUSMFree"] > 0
            elif name == "urUSMFree":
                self.truth.overlaps += any(self.open[a] for a in _ALLOCATIONS)
            return own
        ending = _ENDING.fullmatch(rest)
        if ending is None:
            raise TraceError("cannot read the ending of a call")
        if self.open[name] == 0:
            raise TraceError(f"`{name}` ends more often than it begins")
        self.truth.calls[name] += 1
        self.partitioned |= name == "urDevicePartition"
        if _MEMORY_CALL.match(name):
            self.memory_call(name, ending["arguments"], ending["result"])
        self.open[name] -= 1
        return own

    def memory_call(self, name: str, arguments: str, result: str) -> None:
        succeeded = result == "UR_RESULT_SUCCESS"
        if name not in _MODELLED:
            if name not in _HARMLESS:
                raise TraceError(f"`{name}` is not modelled")
            return
        values = split_arguments(arguments)
        if name in _ALLOCATIONS:
            self.allocation(_ALLOCATIONS[name], values, succeeded)
        elif not succeeded:
            if name == "urUSMFree":
                raise TraceError("a free failed, its effect is unknown")
        elif name == "urUSMFree":
            self.free(pointer(values, "pMem"))
        elif name in _COPIES:
            self.copy(name, values)
        elif name == "urMemBufferCreate":
            if re.search(r"UR_MEM_FLAG_(USE_HOST_POINTER|ALLOC_COPY_HOST_POINTER)", value(values, "flags")):
                size = number(values, "size")
                self.truth.buffer_creates.add(size)
                self.transfer("host_to_device", size)
        else:
            direction = _BUFFER_TRANSFERS[name]
            size = region_bytes(values) if name.endswith("Rect") else number(values, "size")
            if direction == "device_to_host":
                self.truth.buffer_reads.add(size)
            elif direction == "host_to_device":
                self.truth.buffer_writes.add(size)
            self.transfer(direction, size)

    def allocation(self, kind: str, values: dict[str, str], succeeded: bool) -> None:
        device = "" if kind == "host" else f"{pointer(values, 'hDevice'):#x}"
        rows = self.rows(kind, device)
        size = number(values, "size")
        if not succeeded:
            for row in rows:
                row.failed_count += 1
            return
        found = _POINTEE.fullmatch(value(values, "ppMem"))
        if found is None or found[1] == "nullptr":
            raise TraceError("an allocation succeeded without a pointer")
        address = int(found[1], 16)
        self.settle_overlapped(address, size)
        self.blocks[address] = (size, kind, device)
        bisect.insort(self.starts, address)
        self.truth.contexts.add(value(values, "hContext"))
        if device:
            self.truth.devices.add(device)
        for row in rows:
            row.alloc_count += 1
            row.allocated_bytes += size
            row.current_count += 1
            row.current_bytes += size
            row.peak_bytes = max(row.peak_bytes, row.current_bytes)
            row.peak_count = max(row.peak_count, row.current_count)
        total = sum(r.current_bytes for r in self.truth.kinds.values())
        self.truth.peak_bytes = max(self.truth.peak_bytes, total)

    def settle_overlapped(self, address: int, size: int) -> None:
        """Apply the frees that must have happened for the runtime to hand this memory out again."""
        last = bisect.bisect_left(self.starts, address + max(size, 1))
        overlapped = []
        for start in reversed(self.starts[:last]):
            if start + max(self.blocks[start][0], 1) <= address:
                break
            overlapped.append(start)
        if len(overlapped) > self.open["urUSMFree"] - self.settled.total():
            raise TraceError("memory is handed out that is still in use")
        for start in overlapped:
            self.apply_free(start)
            self.settled[start] += 1
            self.truth.settled_frees += 1

    def free(self, address: int) -> None:
        if self.settled[address]:
            self.settled[address] -= 1
        elif address in self.blocks:
            self.apply_free(address)
        else:
            raise TraceError("a pointer is freed that was never allocated")

    def apply_free(self, address: int) -> None:
        size, kind, device = self.blocks.pop(address)
        del self.starts[bisect.bisect_left(self.starts, address)]
        for row in self.rows(kind, device):
            row.free_count += 1
            row.freed_bytes += size
            row.current_count -= 1
            row.current_bytes -= size

    def rows(self, kind: str, device: str) -> list[KindTotals]:
        """What an event of a kind on a device changes."""
        of_kind = self.truth.kinds[kind]
        return [of_kind, self.truth.rows.setdefault((device, kind), KindTotals())] if device else [of_kind]

    def copy(self, name: str, values: dict[str, str]) -> None:
        if name == "urEnqueueUSMMemcpy":
            size = extent = number(values, "size")
            extents = (extent, extent)
        else:
            width, height = number(values, "width"), number(values, "height")
            size = width * height
            extents = tuple(number(values, p) * max(height - 1, 0) + width for p in ("dstPitch", "srcPitch"))
        self.truth.memcpy.add(size)
        target = self.side(pointer(values, "pDst"), extents[0])
        source = self.side(pointer(values, "pSrc"), extents[1])
        if (source, target) != ("host", "host"):
            self.transfer(f"{source}_to_{target}", size)

    def side(self, address: int, size: int) -> str:
        """Where a pointer leads: `device` (device, shared USM) or `host` (host USM, all other memory)."""
        position = bisect.bisect_right(self.starts, address) - 1
        if position < 0:
            return "host"
        start = self.starts[position]
        block_size, kind, _ = self.blocks[start]
        if address >= start + block_size:
            return "host"
        if address + size > start + block_size:
            raise TraceError(f"a copy of {size} bytes runs over the end of a block of {block_size}")
        return "host" if kind == "host" else "device"

    def transfer(self, direction: str, size: int) -> None:
        self.truth.transfers.setdefault(direction, Amount()).add(size)


def split_arguments(arguments: str) -> dict[str, str]:
    """`.a = 1, .b = 0x1 ({.c = 2, .d = 3})` as {"a": "1", "b": "0x1 ({.c = 2, .d = 3})"}."""
    parts: list[str] = []
    depth = start = 0
    for position, character in enumerate(arguments):
        if character in "({":
            depth += 1
        elif character in ")}":
            depth -= 1
            if depth < 0:
                raise TraceError("brackets do not match")
        elif depth == 0 and arguments.startswith(", .", position):
            parts.append(arguments[start:position])
            start = position + 2
    parts.append(arguments[start:])
    if depth:
        raise TraceError("brackets do not match")
    values: dict[str, str] = {}
    for part in parts:
        found = re.fullmatch(r"\.(\w+) = (.*)", part)
        if found is None or found[1] in values:
            raise TraceError(f"cannot read the argument `{part}`")
        values[found[1]] = found[2]
    return values


def value(values: dict[str, str], name: str) -> str:
    if name not in values:
        raise TraceError(f"argument `{name}` is missing")
    return values[name]


def number(values: dict[str, str], name: str) -> int:
    text = value(values, name)
    if not re.fullmatch(r"\d+", text):
        raise TraceError(f"argument `{name}` is no number")
    return int(text)


def pointer(values: dict[str, str], name: str) -> int:
    text = value(values, name)
    if not _POINTER.fullmatch(text):
        raise TraceError(f"argument `{name}` is no pointer")
    return 0 if text == "nullptr" else int(text, 16)


def region_bytes(values: dict[str, str]) -> int:
    found = _REGION.search(value(values, "region"))
    if found is None:
        raise TraceError("argument `region` cannot be read")
    return int(found[1]) * int(found[2]) * int(found[3])
