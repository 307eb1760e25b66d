"""What dpctl knows: its devices, its memory objects, the work in its queues.

Everything here works on a dpctl that the program has imported; nothing imports it or brings SYCL up. No object of the
program is asked for anything that could run code of the program.
"""

from __future__ import annotations

import gc
import sys
import time

from dpmem import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

#: A property that the runtime is asked for every time, so that the hook hears which device is meant.
_ASKED_ANEW = ("max_compute_units", "global_mem_size", "vendor", "driver_version")
_KINDS = {"MemoryUSMDevice": "device", "MemoryUSMShared": "shared", "MemoryUSMHost": "host"}


def dpctl_module() -> Any | None:
    """The program's dpctl, if it has imported one whole."""
    module = sys.modules.get("dpctl")
    return module if module is not None and hasattr(module, "get_devices") else None


def bring_up() -> None:
    """Have dpctl and SYCL up, for a caller who speaks of a device before the program has used one.

    Raises
    ------
    RuntimeError
        There is no dpctl, or it finds no device.
    """
    try:
        import dpctl

        dpctl.select_default_device()
    except Exception as error:
        raise RuntimeError(f"no SYCL device can be asked about ({error}): `dpmem doctor` says more") from error


def devices() -> list[Any]:
    """Every root device; SYCL must be up."""
    dpctl = dpctl_module()
    return list(dpctl.get_devices()) if dpctl is not None else []


def default_device() -> Any | None:
    """The device that SYCL would choose; SYCL must be up."""
    dpctl = dpctl_module()
    if dpctl is None:
        return None
    try:
        return dpctl.select_default_device()
    except Exception:
        return None


def root_filter(device: Any) -> str:
    """The filter string of a device, or of the root device that a sub-device is part of."""
    parent = getattr(device, "parent_device", None)
    while parent is not None:
        device, parent = parent, getattr(parent, "parent_device", None)
    return str(device.filter_string)


def name_devices() -> None:
    """Tell the hook the names of the devices it has seen."""
    if not _native.device_unnamed():
        return
    known = devices()
    for device in known:
        handle = _handle(device)
        if handle:
            _native.device_name(handle, root_filter(device))
    if len(known) == 1:
        # Where the hook doesn't hear which device is asked about, there is still no doubt if there is just one.
        for handle in _native.device_unnamed():
            _native.device_name(handle, root_filter(known[0]))


def _handle(device: Any) -> int:
    for name in _ASKED_ANEW:
        _, handle = _native.device_observe(_asking(device, name))
        if handle:
            return handle
    return 0


def _asking(device: Any, name: str) -> Callable[[], object]:
    return lambda: getattr(device, name, None)


def device_facts() -> list[dict[str, Any]]:
    """What is known of each root device; SYCL must be up.

    Makes no context on any device. What only the runtime itself tells (`pci_address`, `ids`, `uuid`,
    `sycl_free_bytes`, `integrated` of a GPU) is None where the hook isn't in.
    """
    default = default_device()
    facts = []
    for device in devices():
        kind = str(device.device_type).rpartition(".")[2]
        handle = _handle(device)
        more = _native.device_properties(handle)
        facts.append(
            {
                **more,
                "handle": handle,
                "filter": root_filter(device),
                "name": str(device.name).strip(),
                "backend": str(device.backend).rpartition(".")[2],
                "type": kind,
                "driver": str(device.driver_version),
                "integrated": True if kind == "cpu" else more["integrated"],
                "default": default is not None and device == default,
                "score": _number(device, "default_selector_score"),
                "capacity_bytes": _number(device, "global_mem_size"),
                "max_alloc_bytes": _number(device, "max_mem_alloc_size"),
            }
        )
    return facts


def add_readings(facts: list[dict[str, Any]], own_bytes: Callable[[str], int]) -> None:
    """Add to each device's facts what it has free now; `own_bytes` says what this process holds on a device."""
    for device in facts:
        reading = _native.device_reading({**device, "own_bytes": own_bytes(device["filter"])})
        device["total_bytes"], device["free_bytes"], device["free_source"], device["free_trust"] = reading


def _number(device: Any, name: str) -> int | None:
    try:
        return int(getattr(device, name))
    except Exception:
        return None


def _memory_types() -> dict[int, tuple[type, str]]:
    """The classes of dpctl's memory objects, subclasses included, and their kinds, by id."""
    module = sys.modules.get("dpctl.memory")
    types: dict[int, tuple[type, str]] = {}
    for name, kind in _KINDS.items():
        pending = [getattr(module, name, None)]
        while pending:
            cls = pending.pop()
            if isinstance(cls, type):
                types[id(cls)] = (cls, kind)
                pending.extend(type.__subclasses__(cls))
    return types


def memory_base() -> Any:
    """The class that memory objects of all kinds have in common, if there is one: its own properties can't be
    overridden."""
    device = getattr(sys.modules.get("dpctl.memory"), "MemoryUSMDevice", None)
    return next((cls for cls in getattr(device, "__mro__", ()) if "_pointer" in vars(cls)), None)


def referenced_addresses() -> list[int]:
    """The address that each memory object in the process points to."""
    memories, _ = inventory()
    if not memories:
        return []
    pointer = memory_base()._pointer.__get__
    return [int(pointer(memory)) for memory, _ in memories]


def existing_blocks(found: list[tuple[Any, str]]) -> list[tuple[int, int, str, str, Any]]:
    """The blocks of memory objects: address, bytes, kind, the device of a queue, and an object that shows it; each
    once, however many do."""
    if not found:
        return []
    base = memory_base()
    blocks: dict[int, tuple[int, int, str, str, Any]] = {}
    for memory, kind in found:
        address, size = int(base._pointer.__get__(memory)), int(base.nbytes.__get__(memory))
        device = root_filter(base.sycl_device.__get__(memory))
        known = blocks.get(address)
        if known is None or known[1] < size:
            blocks[address] = (address, size, kind, device, memory)
    # A memory object may also view a part of another's block; only what begins no earlier block is a block.
    whole: list[tuple[int, int, str, str, Any]] = []
    for _, block in sorted(blocks.items()):
        if not whole or block[0] >= whole[-1][0] + max(whole[-1][1], 1):
            whole.append(block)
    return whole


def asking_kind(memory: Any) -> Callable[[], object]:
    """A call that has dpctl ask the runtime about the block of a memory object."""
    return memory_base().get_usm_type.__get__(memory)  # type: ignore[no-any-return]


def inventory(unfinished: list[Any] | None = None) -> tuple[list[tuple[Any, str]], list[Any]]:
    """Every memory object with its kind, and every queue that the program could have work in.

    A memory object without a queue is still being made, by another thread that has let the GIL go meanwhile; it
    goes to `unfinished`.
    """
    types = _memory_types()
    queue_type = getattr(dpctl_module(), "SyclQueue", None)
    if queue_type is None or not types:
        return [], []
    wanted = {**types, id(queue_type): (queue_type, "")}
    memories, queues = [], []
    for candidate in _native.objects_of(gc.get_objects, [cls for cls, _ in wanted.values()]):
        kind = wanted[id(type(candidate))][1]
        if not kind:
            queues.append(candidate)
        elif _is_finished(candidate):
            memories.append((candidate, kind))
            queues.append(memory_base().sycl_queue.__get__(candidate))
        elif unfinished is not None:
            unfinished.append((candidate, kind))
    return memories, list({hash(queue): queue for queue in queues}.values())


def settled_memory_objects(seconds: float) -> list[tuple[Any, str]]:
    """Every memory object with its kind, those included that are being made now and are done within `seconds`."""
    pending: list[tuple[Any, str]] = []
    memories, _ = inventory(pending)
    deadline = time.monotonic() + seconds
    while pending and time.monotonic() < deadline:
        time.sleep(0.0002)
        memories.extend(entry for entry in pending if _is_finished(entry[0]))
        pending = [entry for entry in pending if not _is_finished(entry[0])]
    return memories


def _is_finished(memory: Any) -> bool:
    return memory_base().sycl_queue.__get__(memory) is not None


def managers() -> list[tuple[Any, Any]]:
    """Each queue that dpctl orders work in, with the events of that work."""
    utils = sys.modules.get("dpctl.utils")
    managers = getattr(getattr(utils, "SequentialOrderManager", None), "_map", None)
    return list(managers.get().items()) if managers is not None else []


def _is_on(queue: Any, device: str | None) -> bool:
    return device is None or root_filter(queue.sycl_device) == device


def unfinished(events: Iterable[Any]) -> list[Any]:
    """Those of dpctl's events that are not complete."""
    complete = sys.modules["dpctl"].event_status_type.complete
    return [event for event in events if event.execution_status != complete]


def busy_devices() -> set[str]:
    """Names of the devices with work queued that keeps its arguments alive."""
    if dpctl_module() is None:
        return set()
    return {
        root_filter(queue.sycl_device)
        for queue, manager in managers()
        if unfinished((*manager.submitted_events, *manager.host_task_events))
    }


def _queued_events(device: str | None, search: bool) -> list[Any]:
    """Events that end when all work that is queued now has ended, that of dpctl's host tasks included; without a
    `search`, which goes through all objects there are, the work that dpctl orders."""
    events: list[Any] = []
    for queue, manager in managers():
        if _is_on(queue, device):
            events.extend(manager.submitted_events)
            events.extend(manager.host_task_events)
    for queue in inventory()[1] if search else ():
        if not _is_on(queue, device):
            continue
        try:
            events.append(queue.submit_barrier())
        except Exception:
            # A queue that can't take a barrier may be lost already; its kernels' events are above.
            continue
    return events


class Waiting:
    """Queued work, that of one device or all, that is being waited for."""

    def __init__(self, device: str | None = None, *, search: bool = True) -> None:
        self._events = unfinished(_queued_events(device, search)) if dpctl_module() is not None else []
        #: Whether there was any.
        self.begun = bool(self._events)

    @property
    def left(self) -> int:
        """How many pieces of it had not ended when that was last asked."""
        return len(self._events)

    def is_over(self) -> bool:
        """Whether all that was queued at the beginning has ended; never waits."""
        if self._events:
            self._events = unfinished(self._events)
        return not self._events


def introduce(name: str) -> bool:
    """Have the hook see a device before the program has used it. Whether that worked; SYCL must be up."""
    for device in devices():
        if root_filter(device) == name:
            handle = _handle(device)
            if handle:
                _native.device_name(handle, name)
                return True
    return False


def drain(seconds: float, device: str | None = None) -> bool:
    """Wait for all queued work, or for that of one device, at most `seconds`; whether it ended.

    The events are asked from time to time. A thread that waits for them could not be called back, and would
    wake up in an interpreter that is about to go.
    """
    deadline = time.monotonic() + seconds
    # Host tasks of dpctl's may take the GIL, and barriers are submitted with it. So first those tasks end.
    return all(_ends(Waiting(device, search=search), deadline) for search in (False, True))


def _ends(waiting: Waiting, deadline: float) -> bool:
    pause = 0.0001
    while not waiting.is_over():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return True


def frozen() -> bool:
    """Whether `gc.freeze()` hides objects of the program from every search."""
    return gc.get_freeze_count() > 0


def python_version() -> str:
    """The interpreter's version, as in `3.11.7`."""
    return ".".join(map(str, sys.version_info[:3]))
