"""Several ways of doing one thing, timed in turn, and told as ratios to the first way.

How fast a machine is drifts, and other people's work disturbs it; so only times of one round are compared, the order
within a round is drawn anew each time and run there and back, and a second copy of the first way runs as one way
more: its ratio to the first, A/A, is what the same comparison shows where there is nothing to be seen.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

#: The name of the second copy of the first way.
AGAIN = "A/A"


@dataclass(frozen=True)
class Ratio:
    """The median of the rounds' ratios, and their quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Ratio:
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    @property
    def spread(self) -> float:
        """How far from 1 the middle half of the rounds lies."""
        return max(abs(self.low - 1), abs(self.high - 1))

    def __str__(self) -> str:
        return f"{self.median:.3f}× ({self.low:.3f}–{self.high:.3f})"


@dataclass(frozen=True)
class Figure:
    """One row of the table: what was measured, the figure, A/A beside it, and what it should be."""

    measure: str
    value: str
    again: str = "–"
    target: str = "–"
    verdict: str = "–"

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


class Times:
    """What `alternate` measured: for each way one time a round, in the order of the rounds."""

    def __init__(self, first: str, times: dict[str, list[float]]) -> None:
        self._first = first
        self._times = times

    def median(self, way: str) -> float:
        return statistics.median(self._times[way])

    def ratio(self, way: str) -> Ratio:
        """A way compared with the first."""
        pairs = zip(self._times[way], self._times[self._first], strict=True)
        return Ratio.of([time / base for time, base in pairs])

    def figure(self, measure: str, way: str, target: float | None = None, detail: str = "") -> Figure:
        """The row for a way; `target` is the largest ratio wanted."""
        ratio, again = self.ratio(way), self.ratio(AGAIN)
        if target is None:
            wanted, verdict = "–", "–"
        else:
            wanted, verdict = f"≤ {target:g}×", judge(ratio.median, target, again.spread)
        return Figure(measure, f"{ratio}{detail}", str(again), wanted, verdict)


def judge(value: float, target: float, spread: float = 0.0) -> str:
    """Whether a figure is as wanted; a miss counts beyond the A/A spread."""
    if value <= target:
        return "met"
    return "within the noise" if value - target <= spread else "missed"


def alternate(ways: Mapping[str, Callable[[], float]], rounds: int, seed: int = 1) -> Times:
    """Call each way twice a round, in an order and back; a way answers with the time that it took.

    The first way is the one that the others are compared with.
    """
    first = next(iter(ways))
    calls = {**ways, AGAIN: ways[first]}
    times: dict[str, list[float]] = {way: [] for way in calls}
    order, shuffle = list(calls), random.Random(seed).shuffle
    for _ in range(rounds):
        shuffle(order)
        spent = dict.fromkeys(calls, 0.0)
        for way in (*order, *reversed(order)):
            spent[way] += calls[way]()
        for way, time in spent.items():
            times[way].append(time / 2)
    return Times(first, times)
