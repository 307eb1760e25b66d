"""Files per second of `dpmem lint` and of ruff on the standard library, in one run, and the ratio.

usage: bench/lint.py [--lint COMMAND] [--ruff COMMAND] [--rounds N] [--folder DIR]

Both get the same list of files and no cache, dpmem all its rules, ruff its default rules and then `ALL`. They
take turns, and the best of the rounds counts. Prints one line per measurement, the ratios and the start-up
time.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time


def best(command, rounds):
    """Seconds of the fastest of `rounds` runs."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        times.append(time.perf_counter() - start)
        if done.returncode not in (0, 1, 2):
            sys.exit(f"`{shlex.join(command[:4])}` failed: {done.stderr[-500:]}")
    return min(times)


def main():
    """Measures and prints."""
    root = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser()
    parser.add_argument("--lint", default=str(root / "target" / "release" / "dpmem-lint"))
    parser.add_argument("--ruff", default=str(pathlib.Path(sys.executable).parent / "ruff"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default=sysconfig.get_path("stdlib"))
    options = parser.parse_args()
    files = sorted(
        str(path)
        for path in pathlib.Path(options.folder).rglob("*.py")
        if not {"site-packages", "dist-packages"} & set(path.parts)
    )
    lint, ruff = shlex.split(options.lint), shlex.split(options.ruff)
    check = [*ruff, "check", "--no-cache", "--isolated", "--quiet"]
    commands = {
        "dpmem lint": [*lint, *files],
        "ruff check": [*check, *files],
        "ruff check --select ALL": [*check, "--select", "ALL", *files],
    }
    for command in commands.values():
        best(command, 1)  # warms the page cache
    seconds = dict.fromkeys(commands, float("inf"))
    for _ in range(options.rounds):
        for name, command in commands.items():
            seconds[name] = min(seconds[name], best(command, 1))
    for name, value in seconds.items():
        print(f"{name:26} {value:7.3f} s  {len(files) / value:8.0f} files/s")
    print(f"ratio to ruff's default rules {seconds['ruff check'] / seconds['dpmem lint']:.2f}")
    print(f"ratio to all of ruff's rules  {seconds['ruff check --select ALL'] / seconds['dpmem lint']:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        empty = pathlib.Path(folder) / "empty.py"
        empty.write_text("x = 1\n")
        print(f"start-up with one small file  {best([*lint, str(empty)], 20) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
