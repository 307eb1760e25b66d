"""How figures are printed: one Markdown table, or JSON for `run.py`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable

from rounds import Figure

_HEAD = ("what", "figure (quartiles)", "A/A", "target", "held")


def markdown(figures: Iterable[Figure]) -> str:
    rows = [_HEAD, *(tuple(figure.as_dict().values()) for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def main(measure: Callable[[bool], list[Figure]], about: str) -> None:
    """Run one benchmark from its own command line."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few rounds only: shows that it runs, measures nothing")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    figures = measure(options.quick)
    if options.json:
        print(json.dumps([figure.as_dict() for figure in figures]))
    else:
        print(markdown(figures))


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
