"""Which devices there are, which is the default and why, and how much memory is free.

Where the program has SYCL up, it is asked in the program's own process, which can't bring anything more up; else a
child process asks (`_probe`). Nothing here makes a context on a device.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from dpmem import _native, _probe, _runtime, _surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The backend to use where two show one piece of hardware.
_PREFERRED = ("level_zero", "cuda", "hip", "opencl")


@dataclass(frozen=True)
class Device:
    """A device, or a GPU that the operating system shows and SYCL does not (`filter` is None, `note` says why)."""

    filter: str | None
    name: str
    backend: str | None
    type: str
    #: Whether it uses the host's memory; None if nobody tells.
    integrated: bool | None
    default: bool
    score: int | None
    capacity_bytes: int | None
    max_alloc_bytes: int | None
    free_bytes: int | None
    free_source: str
    free_trust: str
    driver: str | None = None
    #: Filter strings under which other backends show the same hardware.
    also: list[str] = field(default_factory=list)
    pci_address: str | None = None
    note: str | None = None

    def __str__(self) -> str:
        names = " = ".join([self.filter or "not visible to SYCL", *self.also])
        return f"{names}: {self.name} ({', '.join(self._traits())})"

    def _traits(self) -> Iterator[str]:
        yield self.type
        if self.integrated and self.type != "cpu":
            yield "integrated"
        if self.default:
            yield "default"
        if self.capacity_bytes is not None:
            yield f"{_native.human_size(self.capacity_bytes)}"
        yield f"free {shown(self.free_bytes)} [{self.free_trust}: {self.free_source}]"

    def _repr_html_(self) -> str:
        return f"<code>{escape(str(self))}</code>"


@dataclass(frozen=True)
class DefaultDevice:
    """The device that SYCL would choose (None if there is none), why, and the ones compared with their scores."""

    device: Device | None
    reason: str
    considered: list[tuple[str, int | None]]

    def __str__(self) -> str:
        return f"{self.device.filter if self.device else 'no device'}: {self.reason}"

    def _repr_html_(self) -> str:
        return f"<code>{escape(str(self))}</code>"


class MemoryInfo(tuple[Any, Any]):
    """Free and total bytes of a device, as torch's `mem_get_info` gives them; `free` is None where nobody knows.

    `own_bytes` is what dpmem has seen this process hold; free memory can't be more than `free_at_most_bytes`, whatever
    a driver says.
    """

    free_source: str
    free_trust: str
    own_bytes: int

    def __new__(cls, reading: tuple[int | None, int | None, str, str], own_bytes: int) -> MemoryInfo:
        """Of what `_native.device_reading` answers."""
        total, free, source, trust = reading
        made = super().__new__(cls, (free, total))
        made.free_source, made.free_trust, made.own_bytes = source, trust, own_bytes
        return made

    @property
    def free(self) -> int | None:
        """Bytes free, or None."""
        free: int | None = self[0]
        return free

    @property
    def total(self) -> int | None:
        """Bytes that the device has, or None."""
        total: int | None = self[1]
        return total

    @property
    def free_at_most_bytes(self) -> int | None:
        """The total without what this process holds: a bound for what can be free."""
        return None if self.total is None else max(self.total - self.own_bytes, 0)

    def __repr__(self) -> str:
        own = f", this process holds {_native.human_size(self.own_bytes)}" if self.own_bytes else ""
        return (
            f"MemoryInfo(free {shown(self.free)} of {shown(self.total)} [{self.free_trust}: {self.free_source}]{own})"
        )

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"


def devices() -> list[Device]:
    """Every root device, each piece of hardware once, then GPUs that the system shows and SYCL does not.

    Raises RuntimeError if SYCL could not be asked.
    """
    return View.of_this_process().devices


def default_device() -> DefaultDevice:
    """The device that SYCL would choose, and why. Raises RuntimeError if SYCL could not be asked."""
    return View.of_this_process().default_device(explain_variables())


def mem_get_info(device: Any = None) -> MemoryInfo:
    """Free and total bytes of a device: unpacks as `(free, total)`.

    `device` is a filter string, a `dpctl.SyclDevice`, a dpnp device, a queue, or None for the default device.

    Raises
    ------
    RuntimeError
        SYCL could not be asked, or there is no device.
    ValueError, TypeError
        `device` names no device.
    """
    facts = _facts()
    wanted = _facts_of(facts, device)
    own = _own_bytes(wanted["filter"])
    return MemoryInfo(_native.device_reading({**wanted, "own_bytes": own}), own)


#: What a child answered about this environment: a second question need not start another.
_asked: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}


def _facts() -> list[dict[str, Any]]:
    """What SYCL tells of its devices, to this process or to a child."""
    if _runtime.dpctl_module() is not None and _is_up():
        return _own_facts()
    key = tuple((name, os.environ[name]) for name, _, _ in _native.machine_variables() if name in os.environ)
    if key not in _asked:
        answer = _probe.probe(["dpctl", "devices"])
        if answer.errors:
            raise RuntimeError(f"SYCL could not be asked: {failure(answer)}")
        _asked[key] = answer.devices
    return [dict(facts) for facts in _asked[key]]


#: The processes (this one, or the one that it was forked from) in which SYCL has been found up: it stays up.
_up: set[int] = set()


def _is_up() -> bool:
    if os.getpid() not in _up and _native.hook_runtime_is_up():
        _up.add(os.getpid())
    return os.getpid() in _up


#: What this process's SYCL tells, by the phase of the hook: with it in, more is known.
_own: dict[str, list[dict[str, Any]]] = {}


def _own_facts() -> list[dict[str, Any]]:
    """What SYCL tells in this process. Once it is up its devices stay the same; only free memory is asked anew."""
    phase = _native.hook_status()["phase"]
    if phase not in _own:
        _own[phase] = _runtime.device_facts()
    fresh = []
    for facts in _own[phase]:
        free = _native.device_properties(facts["handle"])["sycl_free_bytes"] if facts["type"] == "gpu" else None
        fresh.append({**facts, "sycl_free_bytes": free})
    return fresh


def failure(answer: _probe.Probe) -> str:
    """Why a child could not list devices."""
    stage, text = next(iter(answer.errors.items()))
    what = {"dpctl": "dpctl can't be imported", "devices": "listing devices failed"}.get(stage, f"{stage} failed")
    selector = os.environ.get("ONEAPI_DEVICE_SELECTOR", "")
    fault = _native.selector_fault(selector)
    hint = f" (ONEAPI_DEVICE_SELECTOR={selector} is malformed: {fault})" if fault else ""
    return f"{what}: {text}{hint}"


def _own_bytes(name: str) -> int:
    try:
        _native.recording_id()
    except RuntimeError:
        return 0  # nothing has been recorded in this process
    _runtime.name_devices()
    return _native.row_in_use(name, "total")[0]


def _facts_of(facts: list[dict[str, Any]], device: Any) -> dict[str, Any]:
    if device is None:
        found = next((known for known in facts if known["default"]), None)
        if found is None:
            raise RuntimeError("there is no SYCL device; `dpmem doctor` says why")
        return found
    if not isinstance(device, str):
        device = getattr(device, "sycl_device", device)
        if not hasattr(type(device), "filter_string"):
            raise TypeError(
                "expected a device as a filter string, dpctl.SyclDevice, dpnp device, queue or None, "
                f"got {type(device).__name__}"
            )
        device = _runtime.root_filter(device)
    for known in facts:
        if known["filter"] == device:
            return known
    matching = [known for known in facts if _matches(device, known)]
    if matching:
        return max(matching, key=lambda known: (known["default"], known["score"] or 0))
    there = ", ".join(known["filter"] for known in facts) or "none"
    raise ValueError(f"expected the filter string of a device, got `{device}`; devices here: {there}")


def _matches(text: str, facts: dict[str, Any]) -> bool:
    """Whether a partial filter string such as "gpu" or "level_zero" may mean a device."""
    backend, kind, number = facts["filter"].split(":")
    words = text.split(":")
    numbers = [word for word in words if word.isdigit()]
    return all(word in (backend, kind) or word.isdigit() for word in words) and numbers in ([], [number])


def shown(size: int | None) -> str:
    """A size for people, or "unknown"."""
    return "unknown" if size is None else _native.human_size(size)


class View:
    """What SYCL and the operating system show, put together."""

    def __init__(self, facts: list[dict[str, Any]]) -> None:
        self._facts = facts
        self._groups = same_hardware(facts)
        self._hidden = _not_visible(facts)

    @classmethod
    def of_this_process(cls) -> View:
        """As this process sees it, or as it would if it brought SYCL up."""
        return cls(_facts())

    @property
    def devices(self) -> list[Device]:
        """Every device, with readings taken now."""
        return [self._device(group) for group in self._groups] + self._hidden

    def _device(self, group: list[dict[str, Any]]) -> Device:
        first, *others = group
        own = sum(_own_bytes(facts["filter"]) for facts in group)
        _, free, source, trust = _native.device_reading({**first, "own_bytes": own})
        return Device(
            filter=first["filter"],
            name=first["name"],
            backend=first["backend"],
            type=first["type"],
            integrated=first["integrated"],
            default=any(facts["default"] for facts in group),
            score=first["score"],
            capacity_bytes=first["capacity_bytes"],
            max_alloc_bytes=first["max_alloc_bytes"],
            free_bytes=free,
            free_source=source,
            free_trust=trust,
            driver=first["driver"],
            also=[facts["filter"] for facts in others],
            pci_address=first["pci_address"],
        )

    def default_device(self, variables: Sequence[VariableEffect], *, files: bool = True) -> DefaultDevice:
        """The default, and why: scores, variables, and what the system shows beyond SYCL.

        Where there is no device, `files` adds what files and variables say about it.
        """
        ranking = sorted(self._facts, key=lambda facts: -(facts["score"] or 0))
        considered = [(facts["filter"], facts["score"]) for facts in ranking]
        group = next((group for group in self._groups if any(facts["default"] for facts in group)), None)
        clauses = [self._ranking(ranking)]
        clauses += [effect.text for effect in variables if effect.matters]
        clauses += [f"the system shows {hidden.name}, which SYCL does not: {hidden.note}" for hidden in self._hidden]
        if group is None and files:
            clauses += missing_drivers()
        return DefaultDevice(self._device(group) if group else None, "; ".join(clauses), considered)

    def _ranking(self, ranking: list[dict[str, Any]]) -> str:
        default = next((facts for facts in ranking if facts["default"]), None)
        if default is None:
            if not ranking:
                return "SYCL shows no device"
            rejected = ", ".join(f"{facts['filter']} scores {facts['score']}" for facts in ranking)
            return f"SYCL would choose none of its devices: {rejected}"
        others = [f"{facts['filter']} {facts['score']}" for facts in ranking if facts is not default]
        if not others:
            return f"the only device that SYCL shows (score {default['score']})"
        return f"score {default['score']}, the highest of {len(ranking)} ({', '.join(others)})"


@dataclass(frozen=True)
class VariableEffect:
    """A variable that is set, and what it does here."""

    name: str
    value: str
    does: str
    #: Devices that would be there without it, as "filter (score)", and those that it brought in.
    removed: list[str]
    added: list[str]
    ignored: bool = False

    @property
    def matters(self) -> bool:
        """Whether it changes what can be chosen, or was meant to."""
        return bool(self.removed or self.added or self.ignored)

    @property
    def text(self) -> str:
        """One clause."""
        head = f"{self.name}={self.value}"
        clauses = []
        if self.removed:
            clauses.append(f"takes away {', '.join(self.removed)}")
        if self.added:
            clauses.append(f"brings in {', '.join(self.added)}")
        return f"{head} {' and '.join(clauses) or self.does}"


def explain_variables(
    environ: dict[str, str] | None = None,
    *,
    limit_s: float = 10.0,
    base: _probe.Child | None = None,
    leave_out: Sequence[str] = (),
) -> list[VariableEffect]:
    """What each variable that is set does: a child asks SYCL once more without it. They run side by side.

    `base` is a child that asks with all of them, if there is one already. `leave_out` names variables that need no
    explaining.
    """
    environ = dict(os.environ if environ is None else environ)
    names = {name for name, value in environ.items() if value}.difference(leave_out)
    table = [(name, effect, does) for name, effect, does in _native.machine_variables() if name in names]
    choosing = [name for name, effect, _ in table if effect == "chooses"]
    children = {}
    if choosing:
        children[""] = base or _probe.Child(["dpctl", "devices"], environ=environ, limit_s=limit_s)
        for name in choosing:
            without = {key: value for key, value in environ.items() if key != name}
            children[name] = _probe.Child(["dpctl", "devices"], environ=without, limit_s=limit_s)
    answers = {name: child.finish() for name, child in children.items()}
    effects = []
    for name, effect, does in table:
        removed, added = [], []
        # A child that could not answer says nothing about the variable.
        if name in answers and not answers[name].errors and not answers[""].errors:
            here, elsewhere = _listed(answers[""]), _listed(answers[name])
            removed = [text for key, text in elsewhere.items() if key not in here]
            added = [text for key, text in here.items() if key not in elsewhere]
        effects.append(VariableEffect(name, environ[name], does, removed, added, ignored=effect == "ignored"))
    return effects


def _listed(answer: _probe.Probe) -> dict[tuple[object, ...], str]:
    """Devices by what stays the same when others are hidden, as "filter (score N)"."""
    seen: dict[tuple[object, ...], str] = {}
    for facts in answer.devices:
        hardware = facts["uuid"] or facts["pci_address"] or facts["filter"]
        seen[facts["backend"], facts["name"], hardware] = f"{facts['filter']} (score {facts['score']})"
    return seen


def same_hardware(facts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group what several backends show of one piece of hardware, the one to use first."""
    groups: list[list[dict[str, Any]]] = []
    for device in facts:
        group = next((group for group in groups if _is_same(group, device, facts)), None)
        if group is None:
            groups.append([device])
        else:
            group.append(device)
    for group in groups:
        group.sort(key=lambda device: (not device["default"], _rank(device["backend"])))
    return groups


def _is_same(group: list[dict[str, Any]], device: dict[str, Any], facts: list[dict[str, Any]]) -> bool:
    if device["type"] == "cpu" or any(known["backend"] == device["backend"] for known in group):
        return False
    known = group[0]
    for key in ("uuid", "pci_address"):
        if device[key] is not None and known[key] is not None:
            return bool(device[key] == known[key])
    # Without either, the same model is the same hardware only if each backend shows just one.
    alike = [other for other in facts if other["ids"] == device["ids"] and other["type"] == device["type"]]
    backends = [other["backend"] for other in alike]
    return device["ids"] is not None and known["ids"] == device["ids"] and len(set(backends)) == len(backends)


def _rank(backend: str) -> int:
    return _PREFERRED.index(backend) if backend in _PREFERRED else len(_PREFERRED)


def _not_visible(facts: list[dict[str, Any]]) -> list[Device]:
    """GPUs on the bus that no SYCL device is."""
    hidden = []
    for gpu in _native.machine_gpus():
        if _surroundings.is_visible(gpu, facts):
            continue
        total, free, source, trust = _native.device_reading(
            {
                "type": "gpu",
                "integrated": gpu["integrated"],
                "pci_address": gpu["pci_address"],
                "ids": gpu["ids"],
                "capacity_bytes": None,
                "sycl_free_bytes": None,
                "own_bytes": 0,
            }
        )
        hidden.append(
            Device(
                filter=None,
                name=f"{gpu['title']} at {gpu['pci_address']}",
                backend=None,
                type="gpu",
                integrated=gpu["integrated"],
                default=False,
                score=None,
                capacity_bytes=total,
                max_alloc_bytes=None,
                free_bytes=free,
                free_source=source,
                free_trust=trust,
                driver=gpu["driver"],
                pci_address=gpu["pci_address"],
                note=_surroundings.why_not_visible(gpu, os.environ),
            )
        )
    return hidden


def missing_drivers() -> list[str]:
    """What the files say about there being no device at all."""
    found = []
    for id in ("env.selector", "opencl.icd"):
        status, message, advice = _surroundings.run_check(id, os.environ)
        if status == "failed":
            found.append(f"{message}; try: {advice}")
    return found


def as_json(device: Device) -> dict[str, Any]:
    """A device as `dpmem devices --json` shows it."""
    return dict(vars(device))
