"""Replays the allocations of a pass of `script.py` against each policy of the pool, without any device.

`python bench/replay.py --record` writes the log anew.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import table
from rounds import Figure, judge

_HERE = Path(__file__).parent
LOG = _HERE / "logs/realistic.log"
#: Events of the log, from the start of the pass.
_EVENTS = 12_000


def measure(quick: bool) -> list[Figure]:
    rounds = [_replay() for _ in range(2 if quick else 7)]
    figures = []
    for policy in rounds[0]:
        first = rounds[0][policy]
        each = statistics.median(found[policy]["ns_per_pair"] for found in rounds)
        share = first["peak_reserved_bytes"] / first["peak_in_use_bytes"]
        requests = first["hits"] + first["misses"]
        told = f"{each:.0f} ns a pair, {first['hits'] / requests:.1%} of {requests:,} from the cache, {share:.2f}×"
        figures.append(
            Figure(f"replay, {policy}: peak reserved / peak in use", told, "–", "≤ 1.25×", judge(share, 1.25))
        )
    return figures


def _replay() -> dict[str, dict[str, float]]:
    command = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "dpmem-core", "--example", "replay", "--"]
    done = subprocess.run([*command, str(LOG)], cwd=_HERE.parent, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["policy"]: row for row in rows}


def record() -> None:
    """Write the log of one pass, as the hook's own list of events tells it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "dpmem", "run", "--no-summary", "--json", str(report)]
        environment = {**os.environ, "DPMEM_TEST_REFERENCE": "1"}
        subprocess.run([*command, str(_HERE / "script.py")], env=environment, check=True)
        events = json.loads(report.read_text())["reference"]["events"]
    numbers: dict[int, int] = {}
    lines: list[str] = []
    made = 0
    for what, kind, _device, size, _site, address in events[:_EVENTS]:
        if what == "alloc":
            numbers[address] = made
            made += 1
            lines.append(f"+{size} {kind}")
        elif address in numbers:
            lines.append(f"-{numbers.pop(address)}")
    LOG.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    else:
        table.main(measure, __doc__)
