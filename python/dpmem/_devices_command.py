"""``dpmem devices``: every device, the default and why it is the default."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from dpmem import _devices, _icd, _kernels, _native, _probe


def run(*, as_json: bool, kernels: bool) -> int:
    """Print the devices as SYCL shows them to programs under `dpmem run`; the result is the exit code.

    With `kernels` each device also runs one, which starts a context on it, in a child process.
    """
    note = _icd.use_pip_runtime()
    # The question and those about single variables are independent: the children run side by side.
    child = _probe.Child(["dpctl", "devices"])
    # What dpmem itself has set needs no explaining.
    own = () if note is None else ("OCL_ICD_FILENAMES",)
    effects = _devices.explain_variables(base=child, leave_out=own)
    answer = child.finish()
    if note is not None:
        say(f"{note}; python alone finds no device: see dpmem doctor")
    if answer.errors:
        say(f"SYCL could not be asked: {_devices.failure(answer)}")
        return 2
    view = _devices.View(answer.devices)
    default = view.default_device(effects)
    found = view.devices
    tried = _kernels.try_each(found) if kernels else None
    if as_json:
        _print_json(found, default, effects, tried)
    else:
        _print_text(found, default, effects, tried)
    return 0


def say(text: str) -> None:
    """A line on standard error."""
    _native.process_write(2, f"dpmem: {text}\n")


def put(text: str) -> None:
    """Data on standard output; a reader that has gone ends the process quietly."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Nothing may be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(0) from None


def _print_json(
    found: list[_devices.Device],
    default: _devices.DefaultDevice,
    effects: list[_devices.VariableEffect],
    tried: dict[str, str] | None,
) -> None:
    rows: list[dict[str, Any]] = []
    for device in found:
        row = _devices.as_json(device)
        row["default_reason"] = default.reason if device.default else None
        if tried is not None:
            row["probe"] = tried.get(device.filter or "")
        rows.append(row)
    put(json.dumps(rows, indent=1) + "\n")
    if default.device is None:
        say(default.reason)


def _print_text(
    found: list[_devices.Device],
    default: _devices.DefaultDevice,
    effects: list[_devices.VariableEffect],
    tried: dict[str, str] | None,
) -> None:
    lines = []
    for device in found:
        lines += _described(device)
        if tried is not None and device.filter is not None:
            lines.append(f"    probe: {tried.get(device.filter)}")
    chosen = default.device.filter if default.device is not None else "none"
    lines.append(f"default: {chosen}")
    lines += [f"    {clause}" for clause in default.reason.split("; ")]
    others = [effect for effect in effects if not effect.matters]
    if others:
        lines.append("variables that change nothing here:")
        lines += [f"    {effect.text}" for effect in others]
    put("\n".join(lines) + "\n")


def _described(device: _devices.Device) -> list[str]:
    size = _devices.shown
    mark = "*" if device.default else "-"
    names = " = ".join([device.filter or "not visible to SYCL", *device.also])
    traits = [device.type]
    if device.type != "cpu" and device.integrated is not None:
        traits.append("integrated" if device.integrated else "discrete")
    lines = [f"{mark} {names}   {device.name} ({', '.join(traits)})"]
    if device.note is not None:
        lines.append(f"    {device.note}")
    lines.append(
        f"    capacity {size(device.capacity_bytes)}, largest allocation {size(device.max_alloc_bytes)}, "
        f"free {size(device.free_bytes)} [{device.free_trust}: {device.free_source}]"
    )
    if device.driver is not None or device.score is not None:
        lines.append(
            f"    driver {device.driver or 'unknown'}, score {device.score if device.score is not None else '-'}"
        )
    return lines
