"""``dpmem watch``: samples of what devices have and what processes hold, from outside.

Reads the system's own accounts and the files in which programs under `dpmem run` publish what they have in use; SYCL
is asked once, in a child process, which devices there are. Nothing is brought up on a device.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import Any

from dpmem import _devices, _devices_command, _icd, _native, _probe, _processes

_MIB = 1 << 20
#: What the columns of CSV are called, after xpu-smi's `dump`: sizes are in MiB there, a device's line has no process.
_CSV = (
    "Timestamp",
    "DeviceId",
    "Device",
    "ProcessId",
    "Memory Total (MiB)",
    "Memory Used (MiB)",
    "Memory Free (MiB)",
    "Memory Peak (MiB)",
    "Source",
    "Trust",
)


@dataclass(frozen=True)
class Row:
    """One line of a sample: a device, what a process holds on it, a program's USM of one kind, or what its pool holds.

    For a pool, what is used is what it has reserved, and the total is the limit on it.
    """

    what: str  # "device", "process", "usm" or "pool"
    device_id: int | None
    device: str
    pid: int | None
    total_bytes: int | None
    used_bytes: int | None
    free_bytes: int | None
    peak_bytes: int | None
    source: str
    trust: str
    #: Bytes per second of a steady climb.
    climb: float | None = None
    kind: str | None = None
    command: str | None = None


def run(*, interval_s: float, count: int | None, form: str, pid: int | None) -> int:
    """Print samples until `count` of them are taken or the user interrupts; the result is the exit code."""
    if pid is not None and not os.path.exists(f"/proc/{pid}"):
        _devices_command.say(f"there is no process {pid}")
        return 2
    try:
        watcher = Watcher(pid)
        _print_samples(watcher, interval_s, count, form)
    except KeyboardInterrupt:
        _devices_command.put("")
    return 0


def _print_samples(watcher: Watcher, interval_s: float, count: int | None, form: str) -> None:
    write = {"table": _table, "csv": _csv, "json": _json}[form]
    taken = 0
    due = time.monotonic()
    while True:
        rows = watcher.sample()
        _devices_command.put(write(rows, taken))
        taken += 1
        if taken == count or watcher.is_over:
            return
        # Due times don't drift with the time that sampling takes; a sample that is late is left out.
        due = max(due + interval_s, time.monotonic())
        time.sleep(due - time.monotonic() if due > time.monotonic() else 0)


class Watcher:
    """The devices to sample, and what has been seen of each number."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._climbs: dict[tuple[object, ...], _native.Climb] = {}
        self._devices = _watched_devices()

    @property
    def is_over(self) -> bool:
        """Whether the one process that is watched has gone."""
        return self._pid is not None and not os.path.exists(f"/proc/{self._pid}")

    def sample(self) -> list[Row]:
        """Everything, now."""
        now = time.monotonic()
        return [*self._device_rows(now), *self._process_rows(now), *self._program_rows(now)]

    def _climb(self, now: float, bytes: int | None, *key: object) -> float | None:
        if bytes is None:
            return None
        return self._climbs.setdefault(key, _native.Climb()).sample(now, bytes)

    def _device_rows(self, now: float) -> list[Row]:
        rows = []
        for number, facts in enumerate(self._devices):
            total, free, source, trust = _native.device_reading({**facts, "own_bytes": 0})
            used = None if total is None or free is None else total - free
            # What is used on the host is everybody's; that it climbs says nothing about devices.
            climb = None if facts["type"] == "cpu" else self._climb(now, used, "device", number)
            rows.append(Row("device", number, facts["label"], None, total, used, free, None, source, trust, climb))
        return rows

    def _process_rows(self, now: float) -> list[Row]:
        rows = []
        numbers = {facts["pci_address"]: number for number, facts in enumerate(self._devices)}
        for pid, address, on_device, on_host, source in _native.machine_processes(self._pid):
            number = numbers.get(address)
            facts = self._devices[number] if number is not None else None
            used = on_host if facts is not None and facts["integrated"] else on_device
            climb = self._climb(now, used, "process", pid, address)
            label = facts["label"] if facts is not None else address
            rows.append(_process_row(number, label, pid, used, source, "exact", climb))
        if self._pid is not None:
            rows += self._resident_row(now, self._pid)
        return rows

    def _resident_row(self, now: float, pid: int) -> list[Row]:
        """The process's own resident memory, which holds what it has on a CPU device, and much else."""
        number = next((number for number, facts in enumerate(self._devices) if facts["type"] == "cpu"), None)
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
                fields = dict(line.split(":", 1) for line in file if ":" in line)
            used = int(fields["VmRSS"].split()[0]) * 1024
        except (OSError, KeyError, ValueError):
            return []
        climb = self._climb(now, used, "resident", pid)
        return [_process_row(number, "host", pid, used, "VmRSS", "estimate", climb)]

    def _program_rows(self, now: float) -> list[Row]:
        rows = []
        for pid, command, recording, kinds, reserves in _native.machine_programs(os.geteuid(), self._pid):
            for name, kind, used, _, peak, _ in kinds if recording else ():
                climb = self._climb(now, used, "usm", pid, name, kind)
                number, label = self._named(name)
                in_use = (pid, None, used, None, peak, "dpmem", "exact", climb)
                rows.append(Row("usm", number, label, *in_use, kind=kind, command=command))
            for name, reserved, peak, limit in reserves:
                climb = self._climb(now, reserved, "pool", pid, name)
                number, label = (None, "host") if name == "host" else self._named(name)
                held = (pid, limit, reserved, None, peak, "dpmem", "exact", climb)
                rows.append(Row("pool", number, label, *held, command=command))
        return rows

    def _named(self, name: str) -> tuple[int | None, str]:
        """The device that a program calls `name`: a filter string, or before that is known what the driver calls it."""
        for number, facts in enumerate(self._devices):
            if name in facts["names"]:
                return number, facts["label"]
        return None, name or "context of several devices"


def _process_row(
    number: int | None, device: str, pid: int, used: int | None, source: str, trust: str, climb: float | None
) -> Row:
    command = _processes.command_of(pid)
    return Row("process", number, device, pid, None, used, None, None, source, trust, climb, command=command)


def _watched_devices() -> list[dict[str, Any]]:
    """Facts of each device, SYCL's first; where SYCL can't be asked, those of the system."""
    _icd.use_pip_runtime()
    answer = _probe.probe(["dpctl", "devices"])
    if answer.errors:
        _devices_command.say(f"devices have no SYCL names: {_devices.failure(answer)}")
    watched = []
    for group in _devices.same_hardware(answer.devices):
        names = [facts["filter"] for facts in group]
        alike = [facts for facts in answer.devices if facts["name"] == group[0]["name"] and facts not in group]
        # A driver's name that two devices share names neither.
        names += [] if alike else [group[0]["name"]]
        watched.append({**group[0], "label": group[0]["filter"], "names": names})
    known = {facts["pci_address"] for facts in watched}
    for gpu in _native.machine_gpus():
        if gpu["pci_address"] not in known:
            label = f"{gpu['title']} at {gpu['pci_address']}"
            watched.append(
                {**gpu, "type": "gpu", "capacity_bytes": None, "sycl_free_bytes": None, "label": label, "names": []}
            )
    if not any(facts["type"] == "cpu" for facts in watched):
        host = {"type": "cpu", "integrated": True, "pci_address": None, "ids": None}
        watched.append({**host, "capacity_bytes": None, "sycl_free_bytes": None, "label": "host", "names": []})
    # What SYCL said was free then is not what is free now.
    return [{**facts, "sycl_free_bytes": None} for facts in watched]


def _size(bytes: int | None) -> str:
    return "-" if bytes is None else _native.human_size(bytes)


def _mib(bytes: int | None) -> str:
    return "N/A" if bytes is None else f"{bytes / _MIB:.2f}"


def _climbing(row: Row) -> str:
    if row.climb is None:
        return ""
    return f"climbs steadily, {_native.human_size(int(row.climb))} a second"


def _table(rows: list[Row], number: int) -> str:
    lines = [] if number == 0 else [""]
    lines.append(time.strftime("%H:%M:%S"))
    lines.append(f"  {'':<28}{'total':>10}{'used':>10}{'free':>10}{'peak':>10}  source")
    for row in rows:
        if row.what == "device":
            head = row.device
        elif row.what == "process":
            head = f"  {row.pid} on {row.device}"
        elif row.what == "usm":
            head = f"  {row.pid} USM {row.kind}"
        else:
            head = f"  {row.pid} reserved" + (" (host)" if row.device == "host" else "")
        limit = row.total_bytes if row.what == "pool" else None
        total = row.total_bytes if row.what != "pool" else None
        cells = "".join(f"{_size(bytes):>10}" for bytes in (total, row.used_bytes, row.free_bytes, row.peak_bytes))
        words = [f"{row.source} ({row.trust})" if row.trust != "unknown" else row.source, _climbing(row)]
        if limit is not None:
            words.append(f"limit {_size(limit)}")
        if row.command is not None:
            # A command line may hold anything, line ends and a terminal's control characters too.
            command = "".join(letter if letter.isprintable() else " " for letter in row.command)
            words.append(command if len(command) <= 48 else f"...{command[-45:]}")
        lines.append(f"  {head[:28]:<28}{cells}  {'; '.join(filter(None, words))}")
    return "\n".join(lines) + "\n"


def _csv(rows: list[Row], number: int) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if number == 0:
        writer.writerow(_CSV)
    now = time.time()
    stamp = time.strftime("%H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1000):03}"
    for row in rows:
        name = f"{row.device} {row.kind or 'reserved'}" if row.what in ("usm", "pool") else row.device
        place = ["N/A" if value is None else value for value in (row.device_id, name, row.pid)]
        sizes = [_mib(bytes) for bytes in (row.total_bytes, row.used_bytes, row.free_bytes, row.peak_bytes)]
        writer.writerow([stamp, *place, *sizes, row.source, row.trust])
    return text.getvalue()


def _json(rows: list[Row], number: int) -> str:
    sample: dict[str, Any] = {
        "sample": number,
        "time_s": round(time.time(), 3),
        "devices": [],
        "processes": [],
        "usm": [],
        "pools": [],
    }
    for row in rows:
        entry: dict[str, Any] = {"device": row.device, "device_id": row.device_id}
        if row.what == "device":
            entry |= {"total_bytes": row.total_bytes, "used_bytes": row.used_bytes, "free_bytes": row.free_bytes}
            sample["devices"].append(entry | _trust(row))
            continue
        entry |= {"pid": row.pid, "command": row.command}
        if row.what == "process":
            sample["processes"].append(entry | {"used_bytes": row.used_bytes} | _trust(row))
        elif row.what == "pool":
            entry |= {"reserved_bytes": row.used_bytes, "peak_reserved_bytes": row.peak_bytes}
            entry |= {"limit_bytes": row.total_bytes}
            sample["pools"].append(entry | {"climb_bytes_per_s": row.climb})
        else:
            entry |= {"kind": row.kind, "current_bytes": row.used_bytes, "peak_bytes": row.peak_bytes}
            sample["usm"].append(entry | {"climb_bytes_per_s": row.climb})
    return json.dumps(sample) + "\n"


def _trust(row: Row) -> dict[str, Any]:
    return {"source": row.source, "trust": row.trust, "climb_bytes_per_s": row.climb}
