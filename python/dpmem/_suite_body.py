"""Running the body of a test, as often as its limits need, and judging it.

The body is what pytest calls the test's `call` phase, so fixtures are set up before and torn down after. It runs once.
If more is left in use than the limit on leaks allows, it runs again with the same fixtures, and once more if that left
more again: only what grew each time is a leak, so caches are none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from dpmem import _live, _native, _suite_text
from dpmem._suite_fixtures import Fixtures
from dpmem._suite_limits import Limit
from dpmem._suite_usage import Block, DeviceUsage, Measurement, Unknown, Usage, settle

#: How often the body of a test may run: the first time, to see whether more is left again, and to be sure of that.
MOST_RUNS = 3


class Body:
    """The body of one test, measured from the making of this on."""

    def __init__(self, item: pytest.Item, fixtures: Fixtures, plain: Callable[[], object]) -> None:
        self._item = item
        self._fixtures = fixtures
        self._plain = plain
        self._measurement = Measurement()
        # What lasts beyond the test, after each run, and the moment at which each began, in ticks.
        self._lasting: list[list[Block]] = []
        # Devices of which it has been said what filled the peak.
        self._told: set[str] = set()
        self._begun = [self._measurement.begun]

    def end(self) -> Usage:
        """What the first run did; settles. Raises Unknown."""
        return self._measurement.end()

    def left(self) -> list[Block]:
        """What one run left that is in use now, and not only as long as pytest keeps the test. Raises Unknown.

        Of several runs it is the one that left most: one may have filled a cache, or replaced what is in it.
        """
        settle()
        blocks = self._lasting_blocks()
        ends = [*self._begun[1:], sys.maxsize]
        runs = (
            [block for block in blocks if at <= block.since < end] for at, end in zip(self._begun, ends, strict=True)
        )
        return max(runs, key=lambda run: sum(block.bytes for block in run))

    def over_memory(self, usage: Usage, limit: Limit, *, failed: bool = False) -> list[str]:
        """What to say if the first run used more than its limit on a device; nothing if it didn't.

        What a run that failed by itself has left is left out: its traceback holds that.
        """
        lines: list[str] = []
        for at in usage.devices:
            if not at.used_bytes:
                continue
            allowed = _meaning(limit, at.device)
            if at.used_bytes > allowed:
                lines += [
                    f"used {_native.human_size(at.used_bytes)} on {at.device}, more than its limit of "
                    f"{limit.shown(allowed)}",
                    f"{_native.human_size(at.peak_bytes)} in use at the peak, "
                    f"{_native.human_size(at.begun_bytes)} when it began",
                    *self._filled_by(usage, at),
                    *([] if failed else self._kept(at.device)),
                ]
        return lines

    def _filled_by(self, usage: Usage, at: DeviceUsage) -> list[str]:
        """What filled the peak of a device, once."""
        told = at.device in self._told
        self._told.add(at.device)
        return [] if told else _suite_text.filled_by(usage, at)

    def _kept(self, device: str) -> list[str]:
        """What the first run left on a device and who holds it, while it is over its limit of memory."""
        kept = [block for block in self._measurement.in_use() if block.since >= self._begun[0]]
        lines = _suite_text.still_there(_live.live(device), {block.address for block in kept})
        return ["still in use at its end:", *lines] if lines else []

    def over_leaks(self, usage: Usage, limit: Limit) -> list[str]:
        """What to say if each run leaves more on a device than its limit; runs the body again to find out.

        To be called after `end`.
        """
        self._lasting.append(self._lasting_blocks())
        excess = self._excess(limit)
        doubt = ""
        while excess and not doubt and len(self._begun) < MOST_RUNS:
            doubt = self._run_again()
            if not doubt:
                settle()
                self._lasting.append(self._lasting_blocks())
                excess = [device for device in self._excess(limit) if device in excess]
        return self._leak_text(usage, excess, limit, doubt) if excess else []

    def _lasting_blocks(self) -> list[Block]:
        """The blocks in use that won't go with the test."""
        blocks = self._measurement.in_use()
        going = self._fixtures.held_addresses(self._item) if blocks else []
        return [block for block in blocks if not _is_hit(block, going)]

    def _run_again(self) -> str:
        """Run the body once more; why that says nothing, if it doesn't."""
        if self._item.config.getoption("usepdb", False) and _test_case(self._item) is not None:
            return "with --pdb its tearDown has not run yet"
        self._begun.append(_native.ticks())
        try:
            return run_again(self._item, self._plain)
        except (KeyboardInterrupt, SystemExit, pytest.exit.Exception):
            raise
        except BaseException as error:  # pytest's own outcomes as well
            return f"it raised {type(error).__name__}: {_first_line(str(error))}"

    def _own(self, run: int) -> list[Block]:
        return [block for block in self._lasting[run] if block.since >= self._measurement.begun]

    def _excess(self, limit: Limit) -> list[str | None]:
        """The devices on which the last run left more than the limit allows.

        What other tests left and this one let go of is in `lasting` but no block of this test. So both must have
        grown: all that lasts, or an older entry of a full cache has merely made room, and the test's own.
        """
        runs = len(self._lasting)
        before = _sums(self._lasting[-2]) if runs > 1 else {}
        before_own = _sums(self._own(-2)) if runs > 1 else {}
        now, now_own = _sums(self._lasting[-1]), _sums(self._own(-1))
        excess = []
        for device, own in now_own.items():
            growth = own - before_own.get(device, 0)
            if runs > 1:
                growth = min(growth, now[device] - before.get(device, 0))
            if growth > _meaning(limit, device):
                excess.append(device)
        return excess

    def _leak_text(self, usage: Usage, excess: list[str | None], limit: Limit, doubt: str) -> list[str]:
        live = _live.live()
        lines: list[str] = []
        for device in excess:
            mine = [block for block in self._own(-1) if block.device == device]
            last = [block for block in mine if block.since >= self._begun[-1]] or mine
            size = _native.human_size(sum(block.bytes for block in last))
            often = "" if doubt else f" each of {len(self._begun)} times that it ran"
            lines.append(
                f"left {size} in use on {device or 'no one device'}{often}, more than its limit of "
                f"{limit.shown(_meaning(limit, device))}"
            )
            if doubt:
                lines.append(f"whether that is a cache could not be found out: when it was run again, {doubt}")
            lines.append("still in use:" if doubt else "still in use from its last run:")
            lines += _suite_text.still_there(live, {block.address for block in last})
            lines += [line for at in usage.devices if at.device == device for line in self._filled_by(usage, at)]
        return lines


def run_again(item: pytest.Item, plain: Callable[[], object]) -> str:
    """Run the body once more with what is set up; pytest hears nothing of it. How it went, if not well."""
    case = _test_case(item)
    if case is None:
        plain()
        return ""
    # The item would note the outcome of each run and of each subtest for pytest.
    result = sys.modules["unittest"].TestResult()
    case(result)
    return "" if result.wasSuccessful() and not result.skipped else "it had another outcome"


def _meaning(limit: Limit, device: str | None) -> int:
    allowed = limit.on(device)
    if allowed is None:
        raise Unknown(f"the capacity of {device or 'no one device'} is not known: give the limit in bytes")
    return allowed


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def own_outcome(item: pytest.Item) -> BaseException | None:
    """What the run that has just returned would have raised: failures and skips of unittest's don't."""
    noted = getattr(item, "_excinfo", None)
    return noted[0].value if noted else None


def is_skip(error: BaseException) -> bool:
    """Whether pytest takes an exception for a skip."""
    unittest = sys.modules.get("unittest")
    return isinstance(error, (pytest.skip.Exception, getattr(unittest, "SkipTest", pytest.skip.Exception)))


def _test_case(item: pytest.Item) -> Any:
    unittest = sys.modules.get("unittest")
    instance = getattr(item, "instance", None)
    return instance if unittest is not None and isinstance(instance, unittest.TestCase) else None


def _is_hit(block: Block, addresses: list[int]) -> bool:
    return any(block.address <= address < block.address + max(block.bytes, 1) for address in addresses)


def _sums(blocks: list[Block]) -> dict[str | None, int]:
    sums: dict[str | None, int] = {}
    for block in blocks:
        sums[block.device] = sums.get(block.device, 0) + block.bytes
    return sums
