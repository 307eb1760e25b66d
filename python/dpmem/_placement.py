"""Where an array lives: device, queue, kind of memory, and how much of a larger block it keeps alive."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from dpmem import _native, _runtime

#: A view that is at most this part of its block keeps "something far larger" alive.
_SMALL_PART = 8
_LARGE_BYTES = 1 << 20


@dataclass(frozen=True)
class Placement:
    """Where one array or memory object lives. Prints in one line."""

    #: Filter string of the root device.
    device: str
    #: The queue, by a name that is the same for the same queue.
    queue: str
    #: "device", "host" or "shared".
    usm_kind: str
    #: Bytes that the object shows, and bytes of the block that it keeps alive.
    view_bytes: int
    block_bytes: int
    #: None if SYCL has no default device now.
    is_default_device: bool | None
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        size = _native.human_size
        block = "" if self.block_bytes == self.view_bytes else f" of a block of {size(self.block_bytes)}"
        default = {True: " (default)", False: " (not the default)", None: ""}[self.is_default_device]
        notes = "".join(f"; {note}" for note in self.notes)
        return (
            f"{size(self.view_bytes)}{block} of {self.usm_kind} memory on {self.device}{default}, {self.queue}{notes}"
        )

    def _repr_html_(self) -> str:
        return f"<code>{escape(str(self))}</code>"


def where(x: Any) -> Placement:
    """Say where `x` lives: a dpnp array, a `usm_ndarray`, a dpctl memory object, or anything with
    `__sycl_usm_array_interface__`.

    Allocates nothing and brings nothing up: what there is to ask is there, or `x` would not be.

    Raises
    ------
    TypeError
        `x` is nothing of that kind.
    """
    array = x.get_array() if hasattr(type(x), "get_array") else x
    memory = getattr(array, "usm_data", array)
    if hasattr(type(memory), "sycl_queue") and hasattr(type(memory), "nbytes"):
        view_bytes = int(memory.nbytes if array is memory else array.size * array.itemsize)
        return _placement(memory, view_bytes)
    interface = getattr(x, "__sycl_usm_array_interface__", None)
    if not isinstance(interface, dict):
        raise TypeError(
            "expected a dpnp array, a usm_ndarray, a dpctl memory object or an object with "
            f"__sycl_usm_array_interface__, got {type(x).__name__}"
        )
    return where(_memory_of(x, interface))


def _memory_of(x: Any, interface: dict[str, Any]) -> Any:
    """A dpctl memory object over what another library's object shows; it holds that object and copies nothing."""
    import dpctl.memory

    try:
        return dpctl.memory.as_usm_memory(x)
    except Exception as problem:
        raise TypeError(f"`{type(x).__name__}` shows no USM that dpctl understands: {problem}") from None


def _placement(memory: Any, view_bytes: int) -> Placement:
    queue, kind, block_bytes = memory.sycl_queue, memory.get_usm_type(), int(memory.nbytes)
    device = queue.sycl_device
    root = device
    while getattr(root, "parent_device", None) is not None:
        root = root.parent_device
    default = _runtime.default_device()
    notes = []
    if root is not device:
        notes.append("on a sub-device")
    if view_bytes * _SMALL_PART <= block_bytes and block_bytes >= _LARGE_BYTES:
        notes.append(f"keeps {_native.human_size(block_bytes - view_bytes)} alive that it doesn't show")
    if device.is_cpu and any(other.is_gpu for other in _runtime.devices()):
        notes.append("on the CPU, although there is a GPU")
    owner = _owner(int(memory._pointer)) if kind != "host" else None
    if owner is not None and owner != _runtime.root_filter(device):
        notes.append(f"its memory is {owner}'s: every access crosses from one device to the other")
    if kind == "host" and not device.is_cpu:
        notes.append("in host memory: every access from the device crosses the bus")
    return Placement(
        device=_runtime.root_filter(device),
        queue=_queue_name(queue),
        usm_kind=kind,
        view_bytes=view_bytes,
        block_bytes=block_bytes,
        is_default_device=None if default is None else root == default,
        notes=notes,
    )


def _owner(address: int) -> str | None:
    """The device whose memory holds an address, where blocks are recorded: an array may have a queue of another."""
    if len(_runtime.devices()) < 2 or not _native.hook_status()["recording"]:
        return None
    _runtime.name_devices()
    blocks = _native.live_blocks()
    return next((block[3] for block in blocks if block[0] <= address < block[0] + block[1]), None)


def _queue_name(queue: Any) -> str:
    """A name for a queue: equal queues have equal names."""
    order = "in order" if queue.is_in_order else "out of order"
    return f"queue {hash(queue) & 0xFFFF_FFFF:08x} ({order})"
