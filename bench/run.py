"""Runs every benchmark, each in a process of its own, and prints one Markdown table.

python bench/run.py [--quick] [NAME...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import machine
import table
from rounds import Figure

BENCHMARKS = ("realistic", "pool", "chunks", "replay", "pairs", "startup", "devices", "holders", "events", "others")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few rounds only: shows that it runs, measures nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(BENCHMARKS)}")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"expected names of benchmarks, got {', '.join(sorted(unknown))}")

    about = machine.describe()
    figures: list[Figure] = []
    failed = []
    for name in options.names or BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        found = _run(name, options.quick)
        if found is None:
            failed.append(name)
        else:
            figures.extend(found)
    print("\n".join([*about, f"- at the end: {machine.describe_load()}"]))
    if options.quick:
        print("- **quick: too few rounds to measure anything**")
    print()
    print(table.markdown(figures))
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _run(name: str, quick: bool) -> list[Figure] | None:
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), "--json"]
    done = subprocess.run(command + ["--quick"] * quick, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return None
    return [Figure(**row) for row in json.loads(done.stdout.splitlines()[-1])]


if __name__ == "__main__":
    sys.exit(main())
