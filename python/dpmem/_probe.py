"""Asks SYCL about its devices in a child process, with a time limit.

A malformed selector aborts the process, a broken driver may crash or hang it, and what SYCL brings up stays up; so the
process that asks is never the user's. The child answers line by line through a pipe of its own, as the drivers may
print; what it had answered before it died is kept. `main` is the child's side.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

#: What the child runs: the folder that `python -c` puts in front must hide no module.
_CHILD = """\
import sys
del sys.path[0]
sys.path.append({folder!r})
from dpmem._probe import main
main({descriptor}, {stages!r})
"""
#: No answer is larger; a child that sends more is not read on.
_MAX_ANSWER_BYTES = 1 << 22
_KERNEL_ELEMENTS = 1000


class Probe:
    """What a child answered: results and errors by stage, in the order of the stages."""

    def __init__(self) -> None:
        #: What each finished stage answered.
        self.results: dict[str, Any] = {}
        #: Why a stage gave no result: the exception's text, how the child died, or that it hung.
        self.errors: dict[str, str] = {}
        #: How long each stage took, in seconds.
        self.durations: dict[str, float] = {}

    @property
    def devices(self) -> list[dict[str, Any]]:
        """What SYCL showed, if it could be asked."""
        found: list[dict[str, Any]] = self.results.get("devices", [])
        for facts in found:
            facts["ids"] = None if facts["ids"] is None else tuple(facts["ids"])  # JSON knows lists only
        return found


class Child:
    """A child that works through `stages`, all within `limit_s`."""

    def __init__(self, stages: list[str], *, environ: dict[str, str] | None = None, limit_s: float = 10.0) -> None:
        self._stages = stages
        self._limit_s = limit_s
        self._answer: Probe | None = None
        self._began = time.monotonic()
        self._reading, writing = os.pipe()
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        code = _CHILD.format(folder=folder, descriptor=writing, stages=stages)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environ,
                pass_fds=(writing,),
            )
        except BaseException:
            os.close(self._reading)
            raise
        finally:
            os.close(writing)

    def finish(self) -> Probe:
        """Wait for the child's answers; asked again, it answers the same."""
        if self._answer is not None:
            return self._answer
        probe = self._answer = Probe()
        try:
            failure = self._listen(probe)
        finally:
            os.close(self._reading)
            self._process.kill()
            _, said = self._process.communicate()
        if failure is not None:
            left = [stage for stage in self._stages if stage not in probe.durations]
            if failure == "":
                failure = _death(self._process.returncode, said)
            if left:
                probe.errors[left[0]] = failure
                probe.durations[left[0]] = time.monotonic() - self._began
        return probe

    def _listen(self, probe: Probe) -> str | None:
        """Read answers till the last; why the child stopped before, "" if it died."""
        import select

        pending, total = b"", 0
        while True:
            left_s = self._limit_s - (time.monotonic() - self._began - _waited_for_processor(self._process.pid))
            if left_s <= 0:
                return f"did not end within {self._limit_s:g} s"
            if not select.select([self._reading], [], [], min(left_s, 0.25))[0]:
                continue
            data = os.read(self._reading, 65536)
            total += len(data)
            if not data or total > _MAX_ANSWER_BYTES:
                return "" if set(self._stages) - set(probe.durations) else None
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                answer = json.loads(line)
                stage = answer["stage"]
                probe.durations[stage] = answer["duration_s"]
                if answer["error"] is None:
                    probe.results[stage] = answer["result"]
                else:
                    probe.errors[stage] = answer["error"]


def probe(stages: list[str], *, environ: dict[str, str] | None = None, limit_s: float = 10.0) -> Probe:
    """Run a child through `stages` and wait for it.

    Stages are "dpctl", "devices", "dpnp", and "kernel:FILTER" for each device to try.
    """
    return Child(stages, environ=environ, limit_s=limit_s).finish()


def _waited_for_processor(pid: int) -> float:
    """Seconds for which a process was ready and others ran: a busy machine is no hung driver."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _death(code: int, said: bytes) -> str:
    # SYCL's last words say why it aborted.
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    words = f": {lines[-1][:300]}" if lines else ""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"the process was ended by {name}{words}"
    return f"the process ended with code {code}{words}"


def main(descriptor: int, stages: list[str]) -> None:
    """Work through `stages` in this process, which is a child of its own for that, and answer on `descriptor`."""
    for stage in stages:
        began = time.monotonic()
        result, error = None, None
        try:
            result = _run(stage)
        except BaseException as problem:
            text = str(problem).strip() or "no reason given"
            error = f"{type(problem).__name__}: {text}"
        answer = {"stage": stage, "duration_s": time.monotonic() - began, "result": result, "error": error}
        os.write(descriptor, json.dumps(answer).encode() + b"\n")
        if error is not None and not stage.startswith("kernel:"):
            break
    # Tearing drivers down may hang or crash, and nobody waits for it.
    os._exit(0)


def _run(stage: str) -> Any:
    if stage == "dpctl":
        import dpctl

        return dpctl.__version__
    if stage == "dpnp":
        import dpnp

        return dpnp.__version__
    if stage == "devices":
        return _devices()
    return _kernel(stage.partition(":")[2])


def _devices() -> list[dict[str, Any]]:
    from dpmem import _native, _runtime

    if not _runtime.devices():
        return []
    # Without it dpctl itself still tells all but addresses and identities.
    with contextlib.suppress(RuntimeError):
        _native.hook_listen()
    return _runtime.device_facts()


def _kernel(name: str) -> str:
    """Allocate on a device, compute there and bring the result back."""
    import dpnp

    x = dpnp.arange(_KERNEL_ELEMENTS, dtype="int32", device=name)
    found = int((x + 1).sum())
    expected = _KERNEL_ELEMENTS * (_KERNEL_ELEMENTS + 1) // 2
    if found != expected:
        raise ArithmeticError(f"expected the sum {expected}, got {found}")
    return name
