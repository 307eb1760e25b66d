"""The truth tests on simulated GPUs: what `dpmem run` reports against the runtime's own trace.

Here are those that only several devices can show, and a few of the corpus; all of it is in `tests/soak`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from truth.corpus import FOLDER, Environment, read_program
from truth.test_truth import check_program

from .fixtures import Machine, older_if_there

PROGRAMS = Path(__file__).parent / "programs"


def check(machine: Machine, path: Path) -> dict:
    run = check_program(read_program(path), Environment(machine.prefix), machine.folder, machine.variables())
    assert run.report is not None
    return run.report


def rows(report: dict, column: str) -> dict:
    """A column of device and shared memory by device, in the order of the devices."""
    order = [device["filter"] for device in report["devices"]]
    found = {name: [0, 0] for name in order}
    for row in report["usm"]:
        if row["kind"] != "host":
            found[row["device"]][row["kind"] == "shared"] += row[column]
    return found


@pytest.mark.parametrize("adapter", ["v1", "v2"])
def test_two_cards(node: Machine, adapter: str) -> None:
    report = check(node.adapter(adapter), PROGRAMS / "two_cards.py")
    # On the device in place N, sizes of device blocks depend on N in a way that no other place has.
    names = [device["filter"] for device in report["devices"]]
    shared = rows(report, "allocated_bytes")
    assert [shared[name][1] for name in names] == [4096 * place for place in range(len(names), 0, -1)]
    blocks = {(site["device"], site["allocated_bytes"]) for site in report["sites"] if site["kind"] == "device"}
    for place, name in enumerate(names, 1):
        assert (name, 10_000 + place) in blocks


def test_two_cards_with_the_older_dpnp(node: Machine) -> None:
    check(older_if_there(node), PROGRAMS / "two_cards.py")


@pytest.mark.parametrize("name", ["between_cards", "thread_for_each_card"])
def test_cards_together(node: Machine, name: str) -> None:
    report = check(node, PROGRAMS / f"{name}.py")
    used = {row["device"] for row in report["usm"] if row["kind"] == "device"}
    assert used == {device["filter"] for device in report["devices"]}


def test_laptop(laptop: Machine) -> None:
    check(laptop, FOLDER / "usm_kinds.py")


def test_workstation(workstation: Machine) -> None:
    check(workstation, FOLDER / "allocation_fails.py")
