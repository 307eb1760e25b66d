"""Accounting as in torch: how much USM a device has in use, had at most, and what holds it.

A device is a filter string (`"opencl:cpu:0"`, `"gpu"`), a `dpctl.SyclDevice`, a dpnp device, a queue, or None for the
default device. "Allocated" is device and shared memory of that device together; host memory is told separately in
`memory_stats`. The numbers are those of the dpmem ledger: sizes as the program asked for them.
"""

from __future__ import annotations

from typing import Any

from dpmem import _native, _runtime

#: What `row_in_use` and `row_totals` answer, in order.
_IN_USE = ("current_bytes", "current_count", "peak_bytes", "peak_count", "run_peak_bytes", "run_peak_count")
_TOTALS = ("allocated_bytes", "alloc_count", "freed_bytes", "free_count", "failed_count", "out_of_memory_count")
_KINDS = ("device", "shared", "host")

#: What of the pool's numbers accumulates.
_POOLED = ("hits", "misses", "trims", "rescues", "taken_beyond_bytes", "given_beyond_bytes")

#: Where accumulated counters start from, by recording, device and kind; those of the pool as the kind `pool`.
_bases: dict[tuple[int, str, str], list[int]] = {}

#: The peak of a device at its last resets, for who follows peaks across them and clears this when beginning to.
peaks_before_reset: dict[str, int] = {}


def memory_allocated(device: Any = None) -> int:
    """Bytes of device and shared USM that are in use on a device.

    Raises
    ------
    RuntimeError
        Nothing has been recorded in this process.
    ValueError, TypeError
        `device` names no device.
    """
    return _native.row_in_use(_filter(device), "total")[0]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes in use on a device at a time, since recording started or `reset_peak_memory_stats`.

    Raises as `memory_allocated` does.
    """
    return _native.row_in_use(_filter(device), "total")[2]


def memory_reserved(device: Any = None) -> int:
    """Bytes of device and shared USM that the process has taken from the runtime: what is in use, and what the pool
    keeps beyond that.

    Raises as `memory_allocated` does.
    """
    name = _filter(device)
    pool = _native.pool_reading(name)
    beyond: int = max(pool["reserved_bytes"] - pool["in_use_bytes"], 0)
    return _native.row_in_use(name, "total")[0] + beyond


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes reserved at a time. Raises as `memory_allocated` does."""
    name = _filter(device)
    pooled: int = _native.pool_reading(name)["peak_reserved_bytes"]
    return max(_native.row_in_use(name, "total")[2], pooled)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start `max_memory_allocated` and the peaks of `memory_stats` anew from what is in use.

    The peak in the report of a run stays that of the whole run. Raises as `memory_allocated` does.
    """
    name = _filter(device)
    peaks_before_reset[name] = max(peaks_before_reset.get(name, 0), _native.row_in_use(name, "total")[2])
    _native.row_reset_peak(name)
    _native.pool_reset_peak(name)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Start the totals of `memory_stats` (allocated, freed, failures, what the pool did) anew.

    Those in the report of a run stay those of the whole run. Raises as `memory_allocated` does.
    """
    name, recording = _filter(device), _native.recording_id()
    for kind in ("total", *_KINDS):
        _bases[recording, name, kind] = _native.row_totals(name, kind)
    _bases[recording, name, "pool"] = _pooled(name)


def memory_stats(device: Any = None) -> dict[str, int]:
    """All counters of a device as a flat dict, keys in alphabetical order.

    Keys are `allocated_bytes.KIND.WHAT` and `allocation.KIND.WHAT` (a number of blocks), with KIND one of `all` (device
    and shared together), `device`, `shared`, `host`, and WHAT one of `current`, `peak`, `allocated`, `freed`;
    `reserved_bytes.all.WHAT`; `num_ooms`, allocations that failed for lack of memory, by the runtime or a limit;
    and, over all devices, `fill.count` and `fill.bytes`. `reserved_bytes.all.allocated` and `.freed` are what the
    runtime gave and took back, which with a pool is not what the program asked for. Of the pool: `pool.cached_bytes`,
    `pool.hits` and `pool.misses`, allocations served from what was kept and by the runtime, `pool.trims`, blocks given
    back to make room, and `pool.rescues`, allocations that succeeded after something was done about a shortage.
    Raises as `memory_allocated` does.
    """
    name = _filter(device)
    stats: dict[str, int] = {}
    for label, kind in (("all", "total"), *((kind, kind) for kind in _KINDS)):
        row = _row(name, kind)
        sums = {"current": "current", "peak": "peak"}
        for what, prefix in sums.items():
            stats[f"allocated_bytes.{label}.{what}"] = row[f"{prefix}_bytes"]
            stats[f"allocation.{label}.{what}"] = row[f"{prefix}_count"]
        stats[f"allocated_bytes.{label}.allocated"] = row["allocated_bytes"]
        stats[f"allocated_bytes.{label}.freed"] = row["freed_bytes"]
        stats[f"allocation.{label}.allocated"] = row["alloc_count"]
        stats[f"allocation.{label}.freed"] = row["free_count"]
    stats["reserved_bytes.all.current"] = memory_reserved(name)
    stats["reserved_bytes.all.peak"] = max_memory_reserved(name)
    stats["pool.cached_bytes"] = _native.pool_reading(name)["cached_bytes"]
    base = _bases.get((_native.recording_id(), name, "pool"), [0] * len(_POOLED))
    pool = {what: now - start for what, now, start in zip(_POOLED, _pooled(name), base, strict=True)}
    for what in ("hits", "misses", "trims", "rescues"):
        stats[f"pool.{what}"] = pool[what]
    # What the program did, and what the runtime did beyond that for the pool.
    for what, beyond in (("allocated", "taken_beyond_bytes"), ("freed", "given_beyond_bytes")):
        stats[f"reserved_bytes.all.{what}"] = stats[f"allocated_bytes.all.{what}"] + pool[beyond]
    stats["num_ooms"] = sum(_row(name, kind)["out_of_memory_count"] for kind in _KINDS)
    stats["fill.count"], stats["fill.bytes"] = _native.fills()
    return dict(sorted(stats.items()))


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """The blocks in use, oldest first; of one device, or of all where `device` is None.

    Each is a dict with `address`, `bytes`, `kind`, `device` (None for host memory of a context of several devices),
    `site` and `stack`: frames as dicts with `file`, `line`, `function` and `library`, innermost first; where there is
    no stack, `origin` says why. Raises as `memory_allocated` does.
    """
    _native.recording_id()
    wanted = None if device is None else _filter(device)
    _runtime.name_devices()
    return [
        {
            "address": address,
            "bytes": size,
            "kind": kind,
            "device": name,
            "site": site,
            "stack": [
                {"file": file, "line": line, "function": function, "library": library}
                for file, line, function, library in stack
            ],
            "origin": origin,
        }
        for address, size, kind, name, site, stack, origin, _ in _native.live_blocks()
        if wanted is None or name == wanted
    ]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The counters of a device as a table. `abbreviated` leaves the kinds out. Raises as `memory_allocated` does."""
    name = _filter(device)
    stats = memory_stats(name)
    kinds = ("all",) if abbreviated else ("all", *_KINDS)
    head = f"{'':<18}{'now':>12}{'at peak':>12}{'allocated':>12}{'freed':>12}"
    rule = "-" * len(head)
    lines = [f"USM of {name or 'the default device'}, as dpmem has recorded it", rule, head, rule]
    for group, show in (("allocated_bytes", _native.human_size), ("allocation", _native.human_count)):
        for kind in kinds:
            label = {"allocated_bytes": "bytes", "allocation": "blocks"}[group]
            cells = (show(stats[f"{group}.{kind}.{what}"]) for what in ("current", "peak", "allocated", "freed"))
            lines.append(f"{label + ', ' + kind:<18}" + "".join(f"{cell:>12}" for cell in cells))
    lines.append(rule)
    if _native.pool_status()[0]:
        pool = _native.pool_reading(name)
        limit = "none" if pool["limit_bytes"] is None else _native.human_size(pool["limit_bytes"])
        lines.append(
            f"pool: {_native.human_size(stats['reserved_bytes.all.current'])} reserved "
            f"(at most {_native.human_size(stats['reserved_bytes.all.peak'])}), "
            f"{_native.human_size(pool['cached_bytes'])} of it cached; limit {limit}"
        )
        lines.append(
            f"pool: {_native.human_count(stats['pool.hits'])} served from the cache, "
            f"{_native.human_count(stats['pool.misses'])} by the runtime, "
            f"{_native.human_count(stats['pool.trims'])} given back to make room, "
            f"{_native.human_count(stats['pool.rescues'])} rescued"
        )
        lines.append(rule)
    lines.append(f"allocations that failed for lack of memory: {_native.human_count(stats['num_ooms'])}")
    gap = recording_gap()
    lines.append("recording: complete" if gap is None else f"recording: INCOMPLETE, {gap}")
    return "\n".join(lines)


def recording_gap() -> str | None:
    """Say why something may be missing from what has been recorded; None if nothing is.

    A recording that `start` began after the program had used SYCL is never complete. Raises RuntimeError if nothing
    has been recorded in this process.
    """
    return _native.recording_gap()


def _row(name: str, kind: str) -> dict[str, int]:
    totals = _native.row_totals(name, kind)
    base = _bases.get((_native.recording_id(), name, kind), [0] * len(_TOTALS))
    row = dict(zip(_IN_USE, _native.row_in_use(name, kind), strict=True))
    row.update((field, total - start) for field, total, start in zip(_TOTALS, totals, base, strict=True))
    return row


def _pooled(name: str) -> list[int]:
    """What `_POOLED` names, since the process began."""
    reading = _native.pool_reading(name)
    reading["rescues"] = sum(reading[key] for key in reading if key.startswith("rescues_by_"))
    return [reading[what] for what in _POOLED]


def _filter(device: Any) -> str:
    """The filter string of the device that `device` means. Brings nothing of SYCL up."""
    _native.recording_id()
    used = _native.hook_runtime_is_up()
    if used:
        _runtime.name_devices()
        if _native.device_unnamed():
            raise RuntimeError("it is not known which device is which: ask memory_snapshot() for the blocks of all")
    return filter_string(device, used)


def filter_string(device: Any, used: bool) -> str:
    """The filter string of the device that `device` means; `used` says whether SYCL is up and may be asked."""
    if device is None:
        default = _runtime.default_device() if used else None
        return _runtime.root_filter(default) if default is not None else ""
    if isinstance(device, str):
        return _filter_of_string(device, used)
    for attribute in ("sycl_device", "filter_string"):
        if hasattr(type(device), attribute):
            return _runtime.root_filter(getattr(device, attribute, device) if attribute == "sycl_device" else device)
    raise TypeError(
        "expected a device as a filter string, dpctl.SyclDevice, dpnp device, queue or None, "
        f"got {type(device).__name__}"
    )


def _filter_of_string(text: str, used: bool) -> str:
    dpctl = _runtime.dpctl_module()
    if not used or dpctl is None:
        return text
    known = [_runtime.root_filter(device) for device in _runtime.devices()]
    if text in known:
        return text
    try:
        return _runtime.root_filter(dpctl.SyclDevice(text))
    except Exception:
        there = ", ".join(known) or "none"
        raise ValueError(f"expected the filter string of a device, got `{text}`; devices here: {there}") from None
