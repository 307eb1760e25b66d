"""Puts an allocation that failed into words: what was asked, what stands in the way, who holds what, what helps."""

from __future__ import annotations

import sys
import time

from dpmem import _cells, _holders, _native, _processes, _recording, _runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dpmem._failure import Failure

#: Places and paths that are told, and how long holders are searched for, in seconds.
_HOLDERS_MAX, _PATHS_MAX, _SEARCH_S = 5, 4, 1.0
#: The search takes at most this part of the time of a program that fails at the same line again and again, and so many
#: lines are remembered.
_SEARCH_SHARE, _LINES_MAX = 0.1, 64
#: Other processes that are told, what one holds at least, and the letters of a command line.
_PROCESSES_MAX, _PROCESS_MIN_BYTES, _COMMAND_MAX = 3, 1 << 20, 60

#: By failing line: when its last search ended, when it is time for the next, and what was found of each block.
_searches: dict[object, tuple[float, float, dict[object, Any]]] = {}


def complete(failure: Failure) -> None:
    """Find out how things stand, and write it down."""
    blocks = _blocks(failure)
    failure.in_use_bytes = sum(block[1] for block in blocks)
    found, failure.holders_age_s = _found(failure, blocks)
    if failure.holders_age_s == 0.0:
        failure.referenced_bytes = sum(b[1] for b in blocks if found.get(b[0], ("", ()))[0] == "referenced")
        failure.in_flight_bytes = failure.in_use_bytes - failure.referenced_bytes
    failure.cached_bytes = _cached(failure)
    if failure.device:
        _look_around(failure, failure.device)
    own = _own_files()
    paths = {at: sorted((row[1] for row in rows), key=lambda p: _distance(p, own)) for at, (_, rows) in found.items()}
    failure.holders = _largest(blocks, paths)
    failure.text = _text(failure)


def _cached(failure: Failure) -> int:
    """Bytes that the pool keeps of what was asked for: on the device, or of host memory, which is on none."""
    if failure.kind != "host":
        return int(_native.pool_reading(failure.device)["cached_bytes"]) if failure.device else 0
    devices = [_runtime.root_filter(device) for device in _runtime.devices()]
    on_devices: int = sum(_native.pool_reading(name)["cached_bytes"] for name in devices)
    everywhere: int = _native.pool_reading(None)["cached_bytes"]
    return everywhere - on_devices


def _found(failure: Failure, blocks: list[Any]) -> tuple[dict[int, Any], float]:
    """State and holders of each block, and how long ago that was so, in seconds."""
    line = (failure.file, failure.line, failure.kind, failure.device)
    begun = time.monotonic()
    ended, next_at, known = _searches.get(line, (0.0, 0.0, {}))
    if begun < next_at:
        # An address may be another block's by now, with another birth.
        return {b[0]: known[b[0], b[1], b[7]] for b in blocks if (b[0], b[1], b[7]) in known}, begun - ended
    held = _holders.find([(block[0], block[1]) for block in blocks], pending=_pending(blocks), seconds=_SEARCH_S)
    found = {address: (state, rows) for address, state, _covered, rows, _more in held.rows()}
    ended = time.monotonic()
    if len(_searches) >= _LINES_MAX:
        _searches.clear()
    births: dict[object, Any] = {(b[0], b[1], b[7]): found[b[0]] for b in blocks if b[0] in found}
    _searches[line] = (ended, ended + (ended - begun) / _SEARCH_SHARE, births)
    return found, 0.0


def _look_around(failure: Failure, name: str) -> None:
    """What the device has free, and what other processes hold there."""
    from dpmem import _devices

    try:
        # SYCL is up, as an allocation was tried, so that this process can ask itself.
        known = _devices._own_facts()
        facts = _devices._facts_of(known, name)
        # What a program calls a device before it knows the filter string.
        alike = [other for other in known if other["name"] == facts["name"]]
        names = {facts["filter"], facts["name"]} if len(alike) == 1 else {facts["filter"]}
        failure.other_processes = _other_processes(facts, names)
        if failure.kind == "host" and facts["type"] != "cpu":
            failure.free_source = "host memory is not the device's"
            return
        reading = _devices.mem_get_info(name)
    except (OSError, RuntimeError, ValueError) as error:
        failure.free_source = f"not to be read: {error}"
        return
    failure.free_bytes, failure.free_source, failure.free_trust = reading.free, reading.free_source, reading.free_trust
    if reading.free_trust == "exact" and reading.free is not None and reading.total is not None:
        failure.others_bytes = max(reading.total - reading.free - reading.own_bytes - failure.cached_bytes, 0)


def _other_processes(facts: dict[str, Any], names: set[str]) -> list[dict[str, Any]]:
    """What the system sees other processes hold on a device, and what programs that dpmem records publish."""
    import os

    own = os.getpid()
    found: dict[int, dict[str, Any]] = {}
    for pid, kind, used in _published(names, os.geteuid()):
        if facts["type"] == "cpu" or kind != "host":
            entry = found.setdefault(pid, {"pid": pid, "command": None, "bytes": 0, "source": "dpmem's record there"})
            entry["bytes"] += used
    for pid, address, on_device, on_host, source in _native.machine_processes(None):
        if address == facts["pci_address"] and facts["pci_address"] is not None:
            used = on_host if facts["integrated"] else on_device
            found[pid] = {"pid": pid, "command": None, "bytes": used, "source": source}
    others = [entry for pid, entry in found.items() if pid != own and entry["bytes"] >= _PROCESS_MIN_BYTES]
    others.sort(key=lambda entry: -entry["bytes"])
    for entry in others[:_PROCESSES_MAX]:
        entry["command"] = _processes.command_of(entry["pid"])
    return others[:_PROCESSES_MAX]


def _published(names: set[str], user: int) -> list[tuple[int, str, int]]:
    """Process, kind and bytes of what programs of a user that dpmem knows of hold on a device.

    Where a program has a pool, that is what it has reserved, device and shared memory in one (as "device"); else what
    it has in use, if it is recorded.
    """
    found = []
    for pid, _, recording, kinds, reserves in _native.machine_programs(user, None):
        pooled = {name for name, *_ in reserves}
        for name, reserved, *_ in reserves:
            if name in names or name == "host":
                found.append((pid, "host" if name == "host" else "device", reserved))
        for name, kind, used, *_ in kinds if recording else ():
            if name in names and ("host" if kind == "host" else name) not in pooled:
                found.append((pid, kind, used))
    return found


def _blocks(failure: Failure) -> list[Any]:
    """The blocks in use that compete for the same room."""
    try:
        blocks = _native.live_blocks()
    except RuntimeError:
        return []
    wanted = {"host"} if failure.kind == "host" else {"device", "shared"}
    return [block for block in blocks if block[2] in wanted and (failure.kind == "host" or block[3] == failure.device)]


def _own_files() -> set[str]:
    """Names of the files whose functions are under way on this thread and that are no library's."""
    names = set()
    frame = sys._getframe()
    while frame is not None:
        if _recording.is_own(frame.f_code.co_filename):
            file = frame.f_code.co_filename
            names.add(_cells.title(file) or file.rpartition("/")[2])
        frame = frame.f_back  # type: ignore[assignment]
    return names


def _distance(path: str, own: set[str]) -> int:
    """How far a path is from what the program's author knows: a name, a local of theirs, one of a library's."""
    place, local, _ = path.partition("(): ")
    if not local:
        return 0
    return 1 if any(place.startswith(f"{name} ") or f": {name} " in place for name in own) else 2


def _pending(blocks: list[Any]) -> set[int]:
    """Addresses of the blocks whose device has work queued."""
    busy = _runtime.busy_devices()
    return {block[0] for block in blocks if busy and (block[3] is None or block[3] in busy)}


def _largest(blocks: list[Any], paths: dict[int, list[str]]) -> list[dict[str, Any]]:
    """The places whose blocks take most: bytes, count, file, line, function, and the paths that hold them."""
    places: dict[tuple[object, ...], dict[str, Any]] = {}
    for address, size, _kind, _device, _site, stack, origin, _since in blocks:
        frame = next((frame for frame in stack if not frame[3]), stack[0] if stack else None)
        file, line, function = frame[:3] if frame else (None, None, None)
        place = places.setdefault(
            (file, line, origin),
            {"bytes": 0, "count": 0, "file": file, "line": line, "function": function, "origin": origin, "holders": []},
        )
        place["bytes"] += size
        place["count"] += 1
        if len(place["holders"]) < _PATHS_MAX:
            place["holders"].extend(path for path in paths.get(address, ())[:1] if path not in place["holders"])
    for place in places.values():
        place["holders"] = _merged(place["holders"])
    return sorted(places.values(), key=lambda place: -place["bytes"])[:_HOLDERS_MAX]


def _merged(paths: list[str]) -> list[str]:
    """Paths without their last index where several differ in nothing else: `__main__.kept[…]`."""
    owners = [path.rpartition("[")[0] if path.endswith("]") else path for path in paths]
    merged = [
        f"{owner}[…]" if owner and owners.count(owner) > 1 else path for owner, path in zip(owners, paths, strict=True)
    ]
    return list(dict.fromkeys(merged))


def _text(failure: Failure) -> str:
    size = _native.human_size
    where = failure.device or ("the host" if failure.kind == "host" else "a device")
    line = f" at {_cells.place(failure.file, failure.line or 0, failure.function or '')}" if failure.file else ""
    why = "beyond the limit of dpmem" if failure.by_limit else "refused by the runtime"
    unknown = "unknown"
    room = [
        f"limit {size(failure.limit_bytes) if failure.limit_bytes is not None else 'none'}",
        f"capacity {size(failure.capacity_bytes) if failure.capacity_bytes else unknown}",
        f"max. single allocation {size(failure.max_alloc_bytes) if failure.max_alloc_bytes else unknown}",
        f"free {size(failure.free_bytes) if failure.free_bytes is not None else unknown} "
        f"[{failure.free_trust}: {failure.free_source}]",
    ]
    lines = [
        f"out of device memory: asked for {size(failure.requested_bytes)} of {failure.kind} memory on {where}{line}, "
        f"{why}",
        f"  {where}: {', '.join(room)}",
        f"  this process: {_in_use(failure)}, {size(failure.cached_bytes)} cached by the pool",
    ]
    if failure.holders:
        lines.append(f"  biggest holders{_age(failure)}:")
    for place in failure.holders:
        at = (
            _cells.place(place["file"], place["line"], place["function"])
            if place["file"]
            else place["origin"] or unknown
        )
        held = _held_by(place)
        count = "1 block" if place["count"] == 1 else f"{_native.human_count(place['count'])} blocks"
        lines.append(f"    {size(place['bytes'])} in {count} from {at}{held}")
    if failure.gave_up_after_s is not None:
        waited = _native.human_duration(failure.gave_up_after_s)
        lines.append(f"  queued work: waited for it, and nothing of it ended within {waited}")
    if failure.other_processes:
        lines.append(f"  other processes: {'; '.join(map(_process, failure.other_processes))}")
    lines.append(f"  what helps: {'; or '.join(_remedies(failure))}")
    return "\n".join(lines)


def _in_use(failure: Failure) -> str:
    size = _native.human_size
    if failure.referenced_bytes is None or failure.in_flight_bytes is None:
        return f"{size(failure.in_use_bytes)} in use (by whom was not searched for again)"
    return f"{size(failure.referenced_bytes)} referenced, {size(failure.in_flight_bytes)} in flight or the runtime's"


def _age(failure: Failure) -> str:
    age = failure.holders_age_s
    return f" (who holds them: as of {_native.human_duration(age)} ago, when this line failed before)" if age else ""


def _process(entry: dict[str, Any]) -> str:
    command = entry["command"] or ""
    if len(command) > _COMMAND_MAX:
        command = command[: _COMMAND_MAX - 1] + "…"
    command = f" ({command})" if command else ""
    return f"{_native.human_size(entry['bytes'])} in {entry['pid']}{command} [{entry['source']}]"


def _held_by(place: dict[str, Any]) -> str:
    shown = place["holders"][: _PATHS_MAX - 1]
    more = ", …" if len(place["holders"]) > len(shown) else ""
    return f", held by {', '.join(shown)}{more}" if shown else ""


def held_most(failure: Failure) -> str | None:
    """Who held most of what was in the way, and how much; None where that has no name, or where one request alone is
    too large."""
    names = failure.holders[0]["holders"] if failure.holders else []
    most = [failure.max_alloc_bytes, failure.capacity_bytes, failure.limit_bytes]
    if not names or any(each is not None and failure.requested_bytes > each for each in most):
        return None
    return f"{names[0]} held most then, {_native.human_size(failure.holders[0]['bytes'])}"


def _remedies(failure: Failure) -> list[str]:
    """The one or two things that fit."""
    size = _native.human_size
    remedies = []
    largest = failure.max_alloc_bytes
    if largest is not None and failure.requested_bytes > largest:
        return [f"work in chunks: the device gives at most {size(largest)} in one allocation"]
    if failure.capacity_bytes is not None and failure.requested_bytes > failure.capacity_bytes:
        return ["work in chunks: the device does not hold as much as one request asks for"]
    if failure.limit_bytes is not None and failure.requested_bytes > failure.limit_bytes:
        return [f"work in chunks, or raise the limit ({size(failure.limit_bytes)}): one request is larger"]
    holders = [name for place in failure.holders for name in place["holders"]]
    if (failure.in_flight_bytes or 0) > (failure.referenced_bytes or 0):
        remedies.append("wait for queued work now and then (dpmem.synchronize()): it keeps what it uses")
    elif holders:
        remedies.append(f"let go of what is not needed any more: {holders[0]} holds most")
    elif failure.holders and failure.holders[0]["file"]:
        first = failure.holders[0]
        cell = _cells.title(first["file"])
        at = f"{cell}, line {first['line']}" if cell else f"{first['file']}:{first['line']}"
        remedies.append(f"let go of what is not needed any more: most is from {at}")
    if failure.by_limit and failure.limit_bytes is not None:
        remedies.append(f"raise the limit ({size(failure.limit_bytes)}), if the device has room")
    elif failure.other_processes and failure.other_processes[0]["bytes"] > (failure.referenced_bytes or 0):
        remedies.insert(0, f"end or wait for process {failure.other_processes[0]['pid']}: it holds most of the device")
    elif failure.others_bytes is not None and failure.others_bytes >= failure.requested_bytes:
        remedies.append(f"see who else uses the device (`dpmem watch`): others hold about {size(failure.others_bytes)}")
    elif not remedies:
        remedies.append("work in smaller pieces: other processes may use the device, too")
    return remedies[:2]
