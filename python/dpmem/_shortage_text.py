"""Puts an allocation that failed into words: what was asked, what stands in the way, who holds what, what helps."""

from __future__ import annotations

import sys

from dpmem import _native, _runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dpmem._out_of_memory import Failure

_HOLDERS_MAX = 5


def complete(failure: Failure) -> None:
    """Find out how things stand, and write it down."""
    blocks = _blocks(failure)
    referenced = set(_runtime.referenced_addresses())
    in_use = [block for block in blocks if block[0] in referenced]
    failure.referenced_bytes = sum(block[1] for block in in_use)
    failure.in_flight_bytes = sum(block[1] for block in blocks) - failure.referenced_bytes
    if failure.device:
        failure.cached_bytes = _native.pool_reading(failure.device)["cached_bytes"]
    failure.holders = _largest(blocks)
    failure.text = _text(failure)


def _blocks(failure: Failure) -> list[Any]:
    """The blocks in use that compete for the same room."""
    try:
        blocks = _native.live_blocks()
    except RuntimeError:
        return []
    wanted = {"host"} if failure.kind == "host" else {"device", "shared"}
    return [block for block in blocks if block[2] in wanted and (failure.kind == "host" or block[3] == failure.device)]


def _largest(blocks: list[Any]) -> list[dict[str, Any]]:
    """The places whose blocks take most: bytes, count, file, line, function, and the names that hold them."""
    places: dict[tuple[object, ...], dict[str, Any]] = {}
    for address, size, _kind, _device, _site, stack, origin in blocks:
        frame = next((frame for frame in stack if not frame[3]), stack[0] if stack else None)
        file, line, function = frame[:3] if frame else (None, None, None)
        place = places.setdefault(
            (file, line, origin),
            {"bytes": 0, "count": 0, "file": file, "line": line, "function": function, "origin": origin, "at": []},
        )
        place["bytes"] += size
        place["count"] += 1
        place["at"].append((size, address))
    largest = sorted(places.values(), key=lambda place: -place["bytes"])[:_HOLDERS_MAX]
    # A handful of each place's largest blocks is enough to know who holds it.
    wanted = [address for place in largest for _, address in sorted(place["at"], reverse=True)[:8]]
    names = holders_of_addresses(wanted)
    for place in largest:
        found = [names[address] for _, address in sorted(place.pop("at"), reverse=True)[:8] if address in names]
        place["holders"] = list(dict.fromkeys(found))
    return largest


def holders_of_addresses(addresses: list[int]) -> dict[int, str]:
    """The name of a variable of the main module that holds each block, or a container in it."""
    wanted, found = set(addresses), dict[int, str]()
    variables = vars(sys.modules["__main__"]) if "__main__" in sys.modules else {}
    for name, value in list(variables.items()):
        if type(value) in (list, tuple, set):
            inner = list(value)
        elif type(value) is dict:
            inner = list(value.values())
        else:
            inner = [value]
        for each in inner:
            address = _runtime.address_of(each)
            if address in wanted:
                found.setdefault(address, f"__main__.{name}")
    return found


def _text(failure: Failure) -> str:
    size = _native.human_size
    where = failure.device or ("the host" if failure.kind == "host" else "a device")
    line = f" at {failure.file}:{failure.line} in {failure.function}" if failure.file else ""
    why = "beyond the limit of dpmem" if failure.by_limit else "refused by the runtime"
    unknown = "unknown"
    room = [
        f"limit {size(failure.limit_bytes) if failure.limit_bytes is not None else 'none'}",
        f"capacity {size(failure.capacity_bytes) if failure.capacity_bytes else unknown}",
        f"max. single allocation {size(failure.max_alloc_bytes) if failure.max_alloc_bytes else unknown}",
        f"free {size(failure.free_bytes) if failure.free_bytes is not None else unknown}",
    ]
    lines = [
        f"out of device memory: asked for {size(failure.requested_bytes)} of {failure.kind} memory on {where}{line}, "
        f"{why}",
        f"  {where}: {', '.join(room)}",
        f"  this process: {size(failure.referenced_bytes or 0)} referenced, {size(failure.in_flight_bytes or 0)} in "
        f"flight or the runtime's, {size(failure.cached_bytes)} cached by the pool",
    ]
    if failure.holders:
        lines.append("  biggest holders:")
    for place in failure.holders:
        at = f"{place['file']}:{place['line']} in {place['function']}" if place["file"] else place["origin"] or unknown
        held = f", held by {', '.join(place['holders'][:3])}" if place["holders"] else ""
        count = "1 block" if place["count"] == 1 else f"{_native.human_count(place['count'])} blocks"
        lines.append(f"    {size(place['bytes'])} in {count} from {at}{held}")
    lines.append(f"  what helps: {'; or '.join(_remedies(failure))}")
    return "\n".join(lines)


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
        remedies.append(f"let go of what is not needed any more: most is from {first['file']}:{first['line']}")
    if failure.by_limit and failure.limit_bytes is not None:
        remedies.append(f"raise the limit ({size(failure.limit_bytes)}), if the device has room")
    elif not remedies:
        remedies.append("work in smaller pieces: other processes may use the device, too")
    return remedies[:2]
