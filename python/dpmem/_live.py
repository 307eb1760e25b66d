"""`dpmem.live`, `holders` and `synchronize`: what is still there, who holds it, and what only waits for queued work."""

from __future__ import annotations

import html
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpmem import _accounting, _cells, _holders, _native, _runtime

#: How long `synchronize` waits, in seconds.
WAIT_S = 60.0


@dataclass(frozen=True)
class Holder:
    """One way in which Python keeps a block.

    Attributes
    ----------
    kind : str
        The most telling link of the chain: exception, cache, cycle, generator, closure, default, notebook, thread,
        host_copy, view, container, attribute, local, global, or other.
    path : str
        The chain from a root that a person would name: `__main__.kept[2]`, `train.py step(): work`.
    bytes : int
        Bytes of the whole block, not of the array that is held.
    """

    kind: str
    path: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.path} ({self.kind}, {_native.human_size(self.bytes)})"

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(self.path)}</code> ({self.kind}, {_native.human_size(self.bytes)})"


class Listed(list[Any]):
    """A list that prints one entry a line, and says what it leaves out."""

    #: What is not in the list, in words; empty if nothing.
    gap: str = ""
    _nothing: ClassVar[str] = "nothing"

    def __str__(self) -> str:
        lines = [str(entry) for entry in self] or [self._nothing]
        return "\n".join([*lines, self.gap] if self.gap else lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Holders(Listed):
    """The holders of one block."""

    _nothing = "no Python object but the one asked about holds it"


class LiveBlocks(Listed):
    """Blocks in use, largest first."""

    _nothing = "no USM is in use"


@dataclass(frozen=True)
class LiveBlock:
    """A block in use.

    Attributes
    ----------
    file, line, function : str, int, str
        The user's line that allocated it; None, with `site` saying why, where it is not known.
    site : str
        `file:line in function`, in a notebook `cell In[7], line 2 in function`; or why there is no line.
    bytes : int
        Its size.
    kind : str
        device, shared or host.
    device : str or None
        Filter string of its device; None for host memory of several devices, or if it isn't known.
    state : str
        referenced: a Python object holds it. in_flight: nothing of Python but arguments of queued work does.
        runtime: it belongs to no Python object, and nothing is queued. cached: the pool keeps it.
    holders : list of Holder
        Who holds it, the most telling first.
    covered_bytes : int
        What the arrays on it cover together; less than `bytes` if there are only views.
    """

    site: str
    file: str | None
    line: int | None
    function: str | None
    bytes: int
    kind: str
    device: str | None
    state: str
    covered_bytes: int
    address: int = field(repr=False)
    holders: list[Holder] = field(default_factory=list)

    def __str__(self) -> str:
        where = f"{self.device or 'no one device'} {self.kind}"
        head = f"{_native.human_size(self.bytes):>10}  {self.state.replace('_', ' '):<10}  {where}  {self.site}"
        return "\n".join([head, *(f"{'':>12}{holder.path} ({holder.kind})" for holder in self.holders)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True)
class Synchronized:
    """What waiting for queued work did.

    Attributes
    ----------
    freed_bytes, freed_count : int or None
        What was freed meanwhile; None if nothing is being recorded.
    waited_s : float
        How long it took, in seconds.
    complete : bool
        Whether all queued work ended; it is waited for a minute at most.
    """

    freed_bytes: int | None
    freed_count: int | None
    waited_s: float
    complete: bool

    def __str__(self) -> str:
        if self.freed_bytes is None or self.freed_count is None:
            freed = "what that freed is not known: nothing is being recorded"
        else:
            freed = f"freed {_native.human_size(self.freed_bytes)} in {_native.human_count(self.freed_count)} blocks"
        rest = "" if self.complete else "; work is still queued"
        return f"waited {_native.human_duration(self.waited_s)}, {freed}{rest}"

    def _repr_html_(self) -> str:
        return html.escape(str(self))


def live(device: Any = None) -> list[LiveBlock]:
    """List every block in use, largest first: where it was allocated, why it is there, and who holds it.

    Parameters
    ----------
    device
        Only that device's: a filter string, `dpctl.SyclDevice`, dpnp device or queue. None for all.

    The search for holders takes 2 s at most; the list's `gap` says so if it ran out of time.

    Raises
    ------
    RuntimeError
        Nothing has been recorded in this process, or recording was stopped.
    ValueError, TypeError
        `device` names no device.
    """
    _native.recording_id()
    if not _native.hook_status()["recording"]:
        raise RuntimeError("dpmem is not recording any more, so what is in use now is not known: call dpmem.start()")
    if device is not None:
        device = _accounting._filter(device)
    else:
        _runtime.name_devices()
    blocks = [block for block in _native.live_blocks() if device is None or block[3] == device]
    held = _holders.find(((block[0], block[1]) for block in blocks), pending=_pending(blocks))
    found = {row[0]: row for row in held.rows()}
    listed = LiveBlocks()
    for address, size, kind, of_device, _, stack, origin, since in blocks:
        _, state, covered, rows, more = found[address]
        frame = next((frame for frame in stack if not frame[3]), stack[0] if stack else None)
        listed.append(
            LiveBlock(
                site=_cells.place(*frame[:3], since) if frame else origin or "unknown",
                file=frame[0] if frame else None,
                line=frame[1] if frame else None,
                function=frame[2] if frame else None,
                bytes=size,
                kind=kind,
                device=of_device,
                state=state,
                covered_bytes=covered,
                address=address,
                holders=_listed(rows, size, more),
            )
        )
    listed.sort(key=lambda block: -block.bytes)
    listed.gap = _gap(held)
    return listed


def holders(x: Any) -> list[Holder]:
    """List who holds the memory under an array: each object that refers to it, with the shortest way there.

    All arrays on the same block count, views included, and so do NumPy arrays from `asnumpy()`. The reference that
    this call itself needs doesn't. Works without recording.

    Parameters
    ----------
    x
        A `dpnp.ndarray`, a `usm_ndarray`, a dpctl memory object, a NumPy array on a USM-host block, or anything with
        `__sycl_usm_array_interface__`.

    The search takes 2 s at most; the list's `gap` says so if it ran out of time.

    Raises
    ------
    TypeError
        `x` has no USM memory.
    """
    address = _address(x)
    block = _block_at(address)
    if block is None:
        raise TypeError(f"expected an array with USM memory of this process, got {type(x).__name__}")
    held = _holders.find([block], pending=set(), asked=id(x))
    ((_, _, _, rows, more),) = held.rows()
    listed = _listed(rows, block[1], more)
    listed.gap = listed.gap or _gap(held)
    return listed


def synchronize(device: Any = None) -> Synchronized:
    """Wait for all queued work, a minute at most, and say what that freed.

    dpctl keeps the arguments of an operation until its kernel has ended. So after `del x` memory may be held by
    nothing but the queue.

    Parameters
    ----------
    device
        Only that device's queues: a filter string, `dpctl.SyclDevice`, dpnp device or queue. None for all.
    """
    recording = _native.hook_status()["recording"]
    name = None
    if device is not None:
        name = _accounting.filter_string(device, _native.hook_runtime_is_up())
    before = dict(_native.live_sizes()) if recording else None
    begun = time.perf_counter()
    complete = _runtime.drain(WAIT_S, name)
    waited = time.perf_counter() - begun
    if before is None or not _native.hook_status()["recording"]:
        return Synchronized(None, None, waited, complete)
    for address, size in _native.live_sizes():
        if before.get(address) == size:
            del before[address]
    return Synchronized(sum(before.values()), len(before), waited, complete)


def _pending(blocks: Iterable[Any]) -> set[int]:
    """Addresses of the blocks whose device has work queued."""
    devices = _runtime.busy_devices()
    return {block[0] for block in blocks if devices and (block[3] is None or block[3] in devices)}


def _listed(rows: Sequence[_native._HolderRow], size: int, more: int) -> Holders:
    listed = Holders(Holder(kind, path, size) for kind, path, _, _ in rows)
    listed.gap = f"… and {_native.human_count(more)} more" if more else ""
    return listed


def _gap(held: _native.Held) -> str:
    if not held.complete:
        return (
            f"the search ran out of time ({_native.human_duration(_holders.LIMIT_S)}) after "
            f"{_native.human_count(held.objects)} objects: there may be more holders"
        )
    if _runtime.frozen():
        return "gc.freeze() hides objects: what only such objects hold, and no name leads to, is not found"
    return ""


def _address(x: Any) -> int:
    """Where the memory of an array begins; 0 if it has none."""
    address = _holders.address_of(x)
    if address:
        return address
    interface = getattr(x, "__sycl_usm_array_interface__", None)
    return int(interface["data"][0]) if isinstance(interface, dict) else 0


def _block_at(address: int) -> tuple[int, int] | None:
    if not address:
        return None
    found: list[tuple[int, int]] = []
    if _native.hook_status()["recording"]:
        found.extend(_native.live_sizes())
    memories, _ = _runtime.inventory()
    found.extend((block[0], block[1]) for block in _runtime.existing_blocks(memories))
    return next(((at, size) for at, size in found if at <= address < at + max(size, 1)), None)
