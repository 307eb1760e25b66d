"""The part of the pytest plugin that measures: which tests, when, and where the results go.

Registered only where `--dpmem` or a marked test asks for it. Under pytest-xdist each worker has one; the process that
distributes only prints. What is found out about a test travels in its report (`dpmem_usage`), as pytest-xdist hands
reports on. Nothing that goes wrong in here may change the outcome of a test that isn't marked.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable
from typing import Any

import pytest

from dpmem import _suite_text, _tracking
from dpmem._suite_body import Body, is_skip, own_outcome
from dpmem._suite_fixtures import Fixtures
from dpmem._suite_limits import BadMark, Limit, of_mark
from dpmem._suite_usage import Block, Unknown, Usage, nothing_to_observe
from dpmem.pytest_plugin import MARKS, NotJudged

#: What isn't judged and passed on at once.
_ENDS = (KeyboardInterrupt, SystemExit, GeneratorExit, pytest.exit.Exception)


class Suite:
    """One session of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._everything = bool(config.getoption("dpmem"))
        self._distributes = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
        self._fixtures = Fixtures()
        self._pid = os.getpid()
        self._began_recording = False
        # What the reports said, in the process that prints.
        self._tests: list[dict[str, Any]] = []
        self._unmeasured: dict[str, int] = {}
        # The test that runs: what is known of it so far.
        self._facts: dict[str, Any] | None = None
        self._body: Body | None = None
        if not self._distributes:
            config.pluginmanager.register(self._fixtures, "dpmem-fixtures")
            # Before modules are collected, so that what they allocate has its lines. A test says why it can't.
            with contextlib.suppress(Unknown):
                self._record()

    def pytest_unconfigure(self) -> None:
        """Take the hook out, if it was put in here."""
        if self._began_recording and os.getpid() == self._pid:
            _tracking.stop()

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Have the body run by `_run`. Innermost, so that what other plugins do around the call isn't counted."""
        if self._distributes or not (self._everything or any(item.get_closest_marker(name) for name in MARKS)):
            yield
            return
        plain, replaced = item.runtest, vars(item).get("runtest")
        item.runtest = lambda: self._run(item, plain)  # type: ignore[method-assign]
        try:
            yield
        finally:
            del item.runtest
            if replaced is not None:
                item.runtest = replaced  # type: ignore[method-assign]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, None, None]:
        """Count what is left when all that belongs to the test has been torn down."""
        yield
        body, self._body = self._body, None
        if body is not None and self._facts is not None and self._facts.get("left_bytes") is not None:
            try:
                with _faults_told():
                    _add_left(self._facts, body.left())
            except Unknown as gap:
                self._facts = _not_measured(self._facts["nodeid"], str(gap))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        """Put what is known into the report of the teardown."""
        outcome = yield
        if call.when == "teardown" and self._facts is not None:
            facts, self._facts = self._facts, None
            if facts["nodeid"] == item.nodeid:
                outcome.get_result().dpmem_usage = facts

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what reports carry, those of workers included."""
        facts = getattr(report, "dpmem_usage", None)
        if facts is None:
            return
        if "unknown" in facts:
            self._unmeasured[facts["unknown"]] = self._unmeasured.get(facts["unknown"], 0) + 1
        else:
            self._tests.append(facts)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the hungriest tests."""
        if not self._everything:
            return
        terminalreporter.section("device memory (dpmem)")
        if self._tests:
            most = self._config.getoption("dpmem_most")
            for line in _suite_text.summary(self._tests, most):
                terminalreporter.line(line)
        for reason, count in self._unmeasured.items():
            terminalreporter.line(f"{_suite_text.counted(count, 'test')} not measured: {reason}")
        if not self._tests and not self._unmeasured:
            terminalreporter.line("no test ran")

    def _run(self, item: pytest.Item, plain: Callable[[], object]) -> None:
        """Run the body in place of pytest, measured and judged."""
        limits = _limits(item)
        try:
            body = self._begin(item, plain)
        except Unknown as gap:
            self._not_judged(item, limits, str(gap))
            plain()
            return
        try:
            plain()
        except _ENDS:
            raise
        except BaseException as error:
            self._after_failure(item, body, limits, skipped=is_skip(error))
            raise
        own = own_outcome(item)
        if own is not None:
            self._after_failure(item, body, limits, skipped=is_skip(own))
            return
        self._judge(item, body, limits)

    def _begin(self, item: pytest.Item, plain: Callable[[], object]) -> Body:
        if os.getpid() != self._pid:
            raise Unknown("this is a forked child, which records nothing")
        with _faults_told():
            self._record()
            return Body(item, self._fixtures, plain)

    def _record(self) -> None:
        if _tracking.is_tracking():
            return
        try:
            _tracking.start()
        except RuntimeError as error:
            raise Unknown(str(error)) from None
        self._began_recording = True

    def _judge(self, item: pytest.Item, body: Body, limits: dict[str, Limit]) -> None:
        lines: list[str] = []
        gaps: dict[str, str] = {}
        try:
            with _faults_told():
                usage = self._end(item, body)
        except Unknown as gap:
            self._not_judged(item, limits, str(gap))
            return
        for name, over in zip(MARKS, (body.over_memory, body.over_leaks), strict=True):
            try:
                with _faults_told():
                    lines += over(usage, limits[name]) if name in limits else []
            except Unknown as gap:
                gaps[name] = str(gap)
        if lines:
            lines += [f"{name} not judged: {reason}" for name, reason in gaps.items()]
            pytest.fail("\n".join(lines), pytrace=False)
        for reason in dict.fromkeys(gaps.values()):
            item.warn(_warning(item, [name for name in gaps if gaps[name] == reason], reason))

    def _after_failure(self, item: pytest.Item, body: Body, limits: dict[str, Limit], *, skipped: bool) -> None:
        """Add what is known to a test that failed by itself; its own failure stands."""
        memory, leaks = (limits.get(name) for name in MARKS)
        lines: list[str] = []
        try:
            with _faults_told():
                usage = self._end(item, body)
                if self._facts is not None and not skipped:
                    _add_left(self._facts, None)
                if memory is not None and not skipped:
                    lines = body.over_memory(usage, memory, failed=True)
                if leaks is not None:
                    lines.append("leaks not judged: the failure keeps what the test's frames held")
        except Unknown as gap:
            if self._everything and self._facts is None:
                self._facts = _not_measured(item.nodeid, str(gap))
            lines = [f"not judged: {gap}"] if limits else []
        if lines and not skipped:
            item.add_report_section("call", "device memory", "\n".join(lines))

    def _end(self, item: pytest.Item, body: Body) -> Usage:
        usage = body.end()
        gap = nothing_to_observe()
        if gap is not None:
            raise Unknown(gap)
        if self._everything:
            self._body, self._facts = body, _facts(item.nodeid, usage)
        return usage

    def _not_judged(self, item: pytest.Item, limits: dict[str, Limit], reason: str) -> None:
        if self._everything:
            self._body, self._facts = None, _not_measured(item.nodeid, reason)
        if limits:
            item.warn(_warning(item, limits, reason))


def _warning(item: pytest.Item, names: Iterable[str], reason: str) -> NotJudged:
    return NotJudged(f"{item.name}: {' and '.join(names)} not judged: {reason}")


def _limits(item: pytest.Item) -> dict[str, Limit]:
    """What the marks of a test ask for, by their names; the test fails if that is nothing."""
    try:
        return {name: limit for name in MARKS if (limit := of_mark(item, name)) is not None}
    except BadMark as fault:
        problem = str(fault)
    pytest.fail(problem, pytrace=False)


@contextlib.contextmanager
def _faults_told() -> Generator[None, None, None]:
    """A fault of dpmem itself is a reason not to judge, and no failure of the test."""
    try:
        yield
    except Unknown:
        raise
    except Exception as fault:
        raise Unknown(f"dpmem failed: {type(fault).__name__}: {fault}") from None


def _not_measured(nodeid: str, reason: str) -> dict[str, Any]:
    return {"nodeid": nodeid, "unknown": reason}


def _facts(nodeid: str, usage: Usage) -> dict[str, Any]:
    """What a report carries of a test: plain values only, as reports are sent between processes."""
    devices = [
        {
            "device": at.device,
            "peak_bytes": at.used_bytes,
            "left_bytes": 0,
            "alloc_count": at.alloc_count,
            "allocated_bytes": at.allocated_bytes,
        }
        for at in sorted(usage.devices, key=lambda at: -at.used_bytes)
        if at.alloc_count or at.used_bytes
    ]
    return {
        "nodeid": nodeid,
        "peak_bytes": max((at.used_bytes for at in usage.devices), default=0),
        "left_bytes": 0,
        "alloc_count": sum(at.alloc_count for at in usage.devices),
        "allocated_bytes": sum(at.allocated_bytes for at in usage.devices),
        "devices": devices,
    }


def _add_left(facts: dict[str, Any], blocks: list[Block] | None) -> None:
    """Enter what is left in use; None if that isn't known."""
    facts["left_bytes"] = None if blocks is None else sum(block.bytes for block in blocks)
    for row in facts["devices"]:
        of_row = None if blocks is None else [block.bytes for block in blocks if block.device == row["device"]]
        row["left_bytes"] = None if of_row is None else sum(of_row)
