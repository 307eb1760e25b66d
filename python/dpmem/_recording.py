"""Starting to record, and taking the report: what `dpmem run` and `dpmem.start()` have in common."""

from __future__ import annotations

import atexit
import os
import sys

from dpmem import _cells, _native, _operands, _runtime, _surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import datetime
    from typing import Any

    from dpmem._native import Finished, Held

#: How long the end of a run waits for queued work, in seconds, and how long it does when a signal ends it.
DRAIN_S = 10.0
DRAIN_TERMINATED_S = 0.5
#: How long the search for holders takes at most when a signal ends the run.
SEARCH_TERMINATED_S = 0.5
#: How long a late start waits for allocations that were under way when the hook came in.
_SETTLE_S = 0.5
#: Size of the blocks that prove that the hook works.
_PROBE_BYTES = 4096

#: Under `dpmem run` recording belongs to the run: start() and stop() of the program change nothing.
belongs_to_run = False
_no_stacks: str | None = None


def begin(*, stack_depth: int, pool: bool = False, limit: str | None = None) -> None:
    """Record a run, from the program's first USM call on; brings nothing of SYCL up."""
    global belongs_to_run
    belongs_to_run = True
    _configure(stack_depth)
    if os.environ.get("DPMEM_TEST_MARK") == "1":
        _native.reference_mark()
    if os.environ.get("DPMEM_TEST_REFERENCE") == "1":
        _native.reference_start()
    if os.environ.get("DPMEM_TEST_POISON") == "1":
        _native.pool_poison(True)
    if pool or limit is not None:
        _native.pool_configure(pool, limit)
    _native.hook_arm(False)


def begin_late(*, stack_depth: int) -> None:
    """Record from now on, in a process that may have used USM already."""
    atexit.register(_native.frames_close)
    atexit.register(_native.pool_on_shortage, None)
    _configure(stack_depth)
    _, queues = _runtime.inventory()
    if not queues:
        # There is nothing of the program's to probe with; its next allocation will be the proof.
        _native.hook_arm(_native.hook_runtime_is_up())
        return
    _native.hook_start_now()
    while not _native.hook_prove(_probe(queues[0])):
        pass
    _runtime.name_devices()
    # Looked for only now: other threads may have allocated while the hook came in. What has been recorded since is
    # known already and not taken in twice.
    memories = _runtime.settled_memory_objects(_SETTLE_S)
    for address, size, kind, device, memory in _runtime.existing_blocks(memories):
        _native.hook_adopt(address, size, kind, device, _runtime.asking_kind(memory))


def _probe(queue: Any) -> list[int]:
    """Allocate and free a block of each kind that the device has; how many of each."""
    memory = sys.modules["dpctl.memory"]
    made = []
    for name in ("MemoryUSMDevice", "MemoryUSMHost", "MemoryUSMShared"):
        try:
            block = getattr(memory, name)(_PROBE_BYTES, queue=queue)
        except Exception:
            made.append(0)
            continue
        del block
        made.append(1)
    if not any(made):
        raise RuntimeError("could not prove the hook: the device of the first queue gave no block of any kind")
    return made


def finish(
    *,
    command: list[str],
    exit_code: int,
    started: datetime.datetime,
    duration_s: float,
    said: list[str],
    notes: list[str],
    failure: dict[str, Any] | None = None,
) -> Finished:
    """Take the report: wait for queued work, find out what Python still holds, read the ledger, stop recording."""
    used = _native.hook_status()["phase"] == "installed"
    patience = DRAIN_TERMINATED_S if _native.process_terminated_by() else DRAIN_S
    try:
        drained = _runtime.drain(patience) if used else True
    except KeyboardInterrupt:
        # Whoever can't wait any longer gets what is known now.
        drained = False
    if used:
        _runtime.name_devices()
    if used and _native.pool_status()[2]:
        notes = [*notes, "no pool: this runtime doesn't tell when freed memory may be reused"]
    for name in _native.pool_unlimited() if used else ():
        notes = [*notes, f"no limit on {name or 'a device'}: its capacity is unknown, so there is no share of it"]
    if _runtime.frozen():
        notes = [*notes, "gc.freeze() hides objects: blocks that only such objects hold are shown as the runtime's own"]
    held = None
    if used:
        held, problem = _search_for_holders(drained=drained)
        notes = [*notes, problem] if problem else notes
    devices = _devices() if used else []
    finished = build(
        held,
        drained=drained,
        command=command,
        exit_code=exit_code,
        started=started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        duration_s=duration_s,
        said=said,
        notes=notes,
        devices=devices,
        surroundings=_gathered(devices if used else None, failure),
        referenced=[] if not used or (held and held.complete) else _runtime.referenced_addresses(),
        mark=os.environ.get("DPMEM_TEST_MARK") == "1",
        reference=os.environ.get("DPMEM_TEST_REFERENCE") == "1",
    )
    _native.frames_close()
    _native.pool_on_shortage(None)
    _native.hook_remove()
    _native.usage_unpublish()
    return finished


def build(held: Held | None, *, drained: bool, **facts: Any) -> Finished:
    """Build a report of what has been recorded so far; `facts` are those of a run that has ended."""
    from dpmem import _failure

    unended = {
        "command": [],
        "exit_code": 0,
        "started": "",
        "duration_s": 0.0,
        "said": [],
        "notes": [],
        "devices": [],
        "surroundings": None,
        "referenced": [],
        "mark": False,
        "reference": False,
    }
    return _native.report_build(
        {
            **unended,
            "python": _runtime.python_version(),
            "held": held,
            "drained": drained,
            "promotions": _operands.promotions(),
            "operations": _operands.operations(),
            "failures": list(_failure.failures.values()),
            "sources": _cells.sources(),
            "no_stacks": _no_stacks,
            **facts,
        }
    )


def _search_for_holders(*, drained: bool) -> tuple[Held | None, str]:
    """Find out who holds what is still in use, or why that can't be known."""
    try:
        # Only now: a run that never searches need not load it.
        from dpmem import _holders

        seconds = SEARCH_TERMINATED_S if _native.process_terminated_by() else _holders.LIMIT_S
        blocks = _native.live_sizes()
        pending = set() if drained else {address for address, _ in blocks}
        return _holders.find(blocks, pending=pending, seconds=seconds), ""
    except BaseException as error:  # a panic of native code as well: the report must not be lost
        return None, f"holders could not be searched for: {type(error).__name__}: {error}"


def _gathered(devices: list[dict[str, Any]] | None, failure: dict[str, Any] | None) -> dict[str, Any] | None:
    try:
        return _surroundings.gather(devices, failure)
    except Exception:
        return None  # The report is worth more than the findings about devices.


def _devices() -> list[dict[str, Any]]:
    facts = _runtime.device_facts()
    _runtime.add_readings(facts, lambda name: _native.row_in_use(name, "total")[0])
    return facts


def _configure(stack_depth: int) -> None:
    global _no_stacks
    _no_stacks = "switched off (stack depth 0)" if stack_depth == 0 else _calibrate()
    _native.frames_configure(stack_depth, library_folders())
    _operands.forget()
    if _no_stacks is None:
        _operands.watch()


def _calibrate() -> str | None:
    """Let the hook learn the layout of frames, from a stack of several kinds of frames; why not, if it can't."""
    problem: str | None = None

    def innermost(number: int) -> int:
        nonlocal problem
        try:
            _native.frames_calibrate(compile("", "", "exec"))
        except RuntimeError as error:
            problem = str(error)
        return number

    def generator() -> Any:
        # A function called back from C: newer interpreters put a frame of their own between the two.
        yield max((1,), key=innermost)

    for _ in generator():
        pass
    return problem


def library_folders() -> list[str]:
    """Folders whose files are no user code."""
    folders = {os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.__file__)}
    # The console script, whose frame lies under the program's.
    folders.add(os.path.join(os.path.dirname(sys.executable), "dpmem"))
    folders.update(word for word in sys.orig_argv[1:2] if os.path.basename(word) == "dpmem")
    folders.update(path for path in sys.path if path.endswith(("lib-dynload", "site-packages", "dist-packages")))
    return sorted(folders | {os.path.realpath(folder) for folder in folders})


def is_own(file: str) -> bool:
    """Whether a file is the program's own and no library's."""
    return not any(file == folder or file.startswith(f"{folder}/") for folder in library_folders())
