"""Ends of processes, over and over: with work queued, with threads allocating, killed, and after forks."""

import json
import random
import subprocess
import time

import pytest

from .environments import PROGRAMS

EXITS = 200
KILLS = 50
FORKING_PROCESSES = 3
FORKS = 100
TIMEOUT_S = 120
pytestmark = pytest.mark.timeout(3600)


@pytest.mark.parametrize(
    ("program", "shows"),
    [("queued", "exits with work queued"), ("allocating", "exits while threads allocate")],
)
def test_exits_in_a_row(environment, tmp_path, figure, program, shows):
    report = tmp_path / "report.json"
    command = [*environment.dpmem_run("--json", report, "--no-summary"), str(PROGRAMS / f"{program}.py")]
    events = 0
    for number in range(EXITS):
        ended = environment.run(command, tmp_path / "run", TIMEOUT_S)
        assert (number, ended.exit_code, ended.stdout, ended.stderr) == (number, 0, "last line\n", "")
        found = json.loads(report.read_text())
        assert found["recording"]["complete"], found["recording"]
        events += found["recording"]["events"]
        report.unlink()
    figure(f"{EXITS} {shows}", f"all with exit code 0 and a whole report, {events:,} events")


def test_a_killed_run_leaves_no_half_report(environment, tmp_path, figure):
    report = tmp_path / "report.json"
    command = [*environment.dpmem_run("--json", report, "--no-summary"), str(PROGRAMS / "many_sites.py")]
    begun = time.monotonic()
    assert environment.run(command, tmp_path / "run", TIMEOUT_S).exit_code == 0
    duration = time.monotonic() - begun
    whole = 0
    draw = random.Random(2)
    for number in range(KILLS):
        # half of them anywhere, half of them near the end, where the report is written
        moment = duration * draw.uniform(0.0 if number % 2 else 0.7, 1.0)
        report.unlink(missing_ok=True)
        process = environment.start(command, tmp_path / "run")
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        if report.exists():
            found = json.loads(report.read_text())
            assert found["schema"] == 1
            assert sum(site["alloc_count"] for site in found["sites"]) >= 3000
            whole += 1
    figure(
        f"{KILLS} times killed at a random moment of `dpmem run --json`",
        f"{whole} whole reports, {KILLS - whole} none, no half one",
    )


@pytest.mark.parametrize("how", ["run", "start"])
def test_forks_while_threads_allocate(environment, tmp_path, figure, how):
    program = str(PROGRAMS / "forking.py")
    report = tmp_path / "report.json"
    command = (
        [*environment.dpmem_run("--json", report, "--no-summary"), program]
        if how == "run"
        else [*environment.python, program, "start"]
    )
    for _ in range(FORKING_PROCESSES):
        ended = environment.run(command, tmp_path / "run", FORKS * TIMEOUT_S)
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert ended.stdout == f"{FORKS} of {FORKS} children ended well\n"
        if how == "run":
            assert json.loads(report.read_text())["recording"]["events"] > 0
    assert [path.name for path in tmp_path.glob("report.json.*")] == [], "a forked child reports nothing"
    way = {"run": "`dpmem run`", "start": "`dpmem.start()`"}[how]
    figure(
        f"{FORKING_PROCESSES} × {FORKS} forks while threads allocate, {way}",
        "no child hung, recorded or reported, and no parent either",
    )
