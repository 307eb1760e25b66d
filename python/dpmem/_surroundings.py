"""What a run found around itself, for the findings about devices: how the program ended, variables, hidden GPUs.

Nothing here brings SYCL up, imports anything, or asks an object of the program for something that could run its code.
"""

from __future__ import annotations

import os
import sys

from dpmem import _icd, _native, _runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType, TracebackType
    from typing import Any

#: dpctl's exceptions for a device that can't be had.
_NO_DEVICE = ("SyclDeviceCreationError", "SyclQueueCreationError")
#: What dpnp and dpctl say when queues mix, whatever the exception's type.
_MIXED = "execution placement can not be unambiguously inferred"
_SELECTOR = "ONEAPI_DEVICE_SELECTOR"
_INTEL = 0x8086


def gather(facts: list[dict[str, Any]] | None, failure: dict[str, Any] | None) -> dict[str, Any] | None:
    """Put together what the rules judge by; `facts` are the devices' if the program used USM, else None.

    None if the program never asked SYCL for anything.
    """
    if facts is None and failure is None:
        return None
    if facts is None:
        facts = _runtime.device_facts() if _runtime.dpctl_module() is not None else []
    environ = dict(os.environ)
    table = _native.machine_variables()
    selector = environ.get(_SELECTOR) or None
    return {
        "devices": [
            {"filter": device["filter"], "type": device["type"], "default": device["default"]} for device in facts
        ],
        "hidden_gpus": hidden_gpus(facts, environ),
        "ignored": [(name, environ[name]) for name, effect, _ in table if effect == "ignored" and environ.get(name)],
        "selector": selector,
        "selector_fault": None if selector is None else _native.selector_fault(selector),
        "remedy": _remedy(facts, environ),
        "failure": failure,
    }


def selector_warning() -> str | None:
    """What is wrong with the selector that the program starts with; SYCL may abort before a report could say it."""
    selector = os.environ.get(_SELECTOR)
    fault = _native.selector_fault(selector) if selector else None
    if fault is None:
        return None
    return f"{_SELECTOR}={selector} is malformed ({fault}): SYCL shows no device at all, or aborts the process"


def run_check(name: str, environ: Mapping[str, str]) -> tuple[str, str, str]:
    """Run a check of files and variables: status, message, advice."""
    groups = [os.getegid(), *os.getgroups()]
    return _native.machine_check(name, dict(environ), _icd.prefixes(), os.geteuid(), groups)


def hidden_gpus(facts: list[dict[str, Any]], environ: Mapping[str, str]) -> list[str]:
    """GPUs that the system shows and SYCL does not, each with the reason."""
    return [
        f"{gpu['title']} at {gpu['pci_address']}, which SYCL does not: {why_not_visible(gpu, environ)}"
        for gpu in _native.machine_gpus()
        if not is_visible(gpu, facts)
    ]


def is_visible(gpu: _native.Gpu, facts: list[dict[str, Any]]) -> bool:
    """Whether a GPU on the bus is one of SYCL's devices."""
    for known in facts:
        if known["pci_address"] == gpu["pci_address"]:
            return True
        if known["pci_address"] is None and known["ids"] == gpu["ids"]:
            return True
    return False


def why_not_visible(gpu: _native.Gpu, environ: Mapping[str, str]) -> str:
    """What keeps SYCL from a GPU that the system shows, as far as files tell."""
    if gpu["driver"] is None:
        return "no kernel driver is bound to it"
    if gpu["driver"] == "vfio-pci":
        return "it is lent to a virtual machine"
    checks = ["drm.permission", "container.devices"]
    if gpu["ids"][0] == _INTEL:
        checks += ["levelzero.loader", "levelzero.driver"]
    for name in checks:
        status, message, advice = run_check(name, environ)
        if status == "failed":
            return f"{message}; try: {advice}"
    if environ.get(_SELECTOR):
        return f"{_SELECTOR}={environ[_SELECTOR]} may hide it; see `dpmem devices`"
    if gpu["ids"][0] == _INTEL:
        return "its driver is there but shows no device; see `dpmem doctor`"
    return "no SYCL adapter for it is installed"


def _remedy(facts: list[dict[str, Any]], environ: Mapping[str, str]) -> str | None:
    if not facts and environ.get(_SELECTOR):
        return f"unset {_SELECTOR}"
    names = ["drm.permission", "container.devices", "levelzero.loader", "levelzero.driver"]
    for name in names if facts else ["opencl.icd", *names]:
        status, _, advice = run_check(name, environ)
        if status == "failed":
            return advice
    return None


def failure() -> dict[str, Any] | None:
    """What the exception that just ended the program says about devices; None if it says nothing about them."""
    error = getattr(sys, "last_value", None)
    seen = 0
    while error is not None and seen < 16:
        text = _text(error)
        cause: dict[str, Any] | None = None
        if type(error).__name__ in _NO_DEVICE and type(error).__module__.startswith("dpctl"):
            words = text.split("'")
            cause = {"kind": "device", "filter": words[1] if len(words) > 2 else None, "arrays": []}
        elif _MIXED in text.lower():
            cause = {"kind": "mix", "filter": None, "arrays": _mixed_arrays(error.__traceback__)}
        if cause is not None:
            return {"text": text, "place": _place(error.__traceback__), **cause}
        error, seen = error.__cause__, seen + 1
    return None


def _text(error: BaseException) -> str:
    # An exception of the program's may have a `__str__` of its own; dpctl's and dpnp's keep their text as an argument.
    arguments = error.args
    return arguments[0] if len(arguments) == 1 and type(arguments[0]) is str else ""


def _frames(traceback: TracebackType | None) -> list[tuple[FrameType, int]]:
    """Frames and lines, innermost first."""
    frames = []
    while traceback is not None:
        frames.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return frames[::-1]


def _user_frame(traceback: TracebackType | None) -> tuple[FrameType, int] | None:
    from dpmem import _recording

    folders = tuple(folder.rstrip("/") + "/" for folder in _recording.library_folders())
    for frame, line in _frames(traceback):
        name = frame.f_code.co_filename
        # Compiled modules put their own sources into tracebacks, by a name relative to where they were built.
        if not name.startswith((*folders, "<frozen")) and not name.endswith((".pyx", ".pxd", ".pxi")):
            return frame, line
    return None


def _place(traceback: TracebackType | None) -> tuple[str, int] | None:
    found = _user_frame(traceback)
    return None if found is None else (found[0].f_code.co_filename, found[1])


def _mixed_arrays(traceback: TracebackType | None) -> list[dict[str, Any]]:
    """The operands of the operation that failed: arrays of different queues, innermost frame first."""
    for frame, _ in _frames(traceback):
        arrays = _distinct(list(frame.f_locals.values()))
        queues: list[Any] = []
        for array in arrays:
            if not any(array.sycl_queue == queue for queue in queues):
                queues.append(array.sycl_queue)
        if len(queues) > 1:
            names = _names(_user_frame(traceback))
            blocks = _native.live_blocks() if _native.hook_status()["recording"] else []
            return [
                {
                    "name": names.get(_address(array)),
                    "queue": 1 + next(n for n, queue in enumerate(queues) if array.sycl_queue == queue),
                    "device": _runtime.root_filter(array.sycl_queue.sycl_device),
                    "made": _made(_address(array), blocks),
                }
                for array in arrays
            ]
    return []


def _distinct(values: Any) -> list[Any]:
    """The arrays among values, each block once."""
    arrays: dict[int, Any] = {}
    for value in values:
        array = _as_array(value)
        if array is not None:
            arrays.setdefault(_address(array), array)
    return list(arrays.values())


def _as_array(value: Any) -> Any | None:
    """The `usm_ndarray` that a dpnp array wraps, or that a value is; None for anything else."""
    kind = type(value)
    if kind.__name__ == "dpnp_array" and kind.__module__.startswith("dpnp"):
        value = value.get_array()
        kind = type(value)
    is_array = kind.__name__ == "usm_ndarray" and kind.__module__.startswith(("dpctl", "dpnp"))
    return value if is_array else None


def _address(array: Any) -> int:
    return int(array.usm_data._pointer)


def _names(found: tuple[FrameType, int] | None) -> dict[int, str]:
    """Variables of the user's frame that hold arrays, by the array's address."""
    if found is None:
        return {}
    frame, _ = found
    names: dict[int, str] = {}
    for name, value in _variables(frame):
        array = _as_array(value)
        if array is not None:
            names.setdefault(_address(array), name)
    return names


def _variables(frame: FrameType) -> Iterator[tuple[str, Any]]:
    yield from frame.f_locals.items()
    for name in frame.f_code.co_names:
        if name in frame.f_globals:
            yield name, frame.f_globals[name]


def _made(address: int, blocks: list[Any]) -> tuple[str, int] | None:
    """The user's line that allocated the block at an address."""
    for start, size, _, _, _, stack, _, _ in blocks:
        if start <= address < start + max(size, 1):
            return next(((file, line) for file, line, _, library in stack if not library), None)
    return None
