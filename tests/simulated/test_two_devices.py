"""Programs whose truth is known beforehand, on machines with several GPUs: what is whose, and what one card's trouble
does to the other.

`programs/` holds them: each compares what dpmem says with what it has done itself and with what the simulated devices
count, and prints what differs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .fixtures import Machine, older_if_there

PROGRAMS = Path(__file__).parent / "programs"
#: Without the adapter's own pool, every byte is accounted for.
NO_POOL = {"UR_L0_DISABLE_USM_ALLOCATOR": "1"}
LEVEL_ZERO = ("level_zero:gpu:0", "level_zero:gpu:1")
OPENCL = ("opencl:gpu:0", "opencl:gpu:1")


def check(machine: Machine, program: str, *words: str) -> None:
    assert machine.setting(**NO_POOL).run(PROGRAMS / f"{program}.py", *words).json() == []


@pytest.mark.parametrize("cards", [LEVEL_ZERO, OPENCL], ids=["level_zero", "opencl"])
def test_each_card_has_its_own_account(node: Machine, cards: tuple[str, str]) -> None:
    check(node.adapter("v1"), "own_accounts", *cards)


def test_each_card_has_its_own_account_with_the_older_dpnp(node: Machine) -> None:
    check(older_if_there(node).adapter("v2"), "own_accounts", *LEVEL_ZERO)


@pytest.mark.parametrize(("adapter", "how"), [("v1", "pool"), ("v2", "limit")])
def test_a_full_card_leaves_the_other_alone(node: Machine, adapter: str, how: str) -> None:
    check(node.adapter(adapter), "one_card_full", how, *LEVEL_ZERO)


@pytest.mark.parametrize("adapter", ["v1", "v2"])
def test_blocks_from_before_the_start_are_their_card_s(node: Machine, adapter: str) -> None:
    check(node.adapter(adapter), "late_on_two", *LEVEL_ZERO)


def test_one_card_by_two_drivers(laptop: Machine) -> None:
    check(laptop, "two_drivers")


def test_the_second_card_alone_is_the_first_for_sycl(node: Machine) -> None:
    """What a selector leaves is numbered anew, by dpctl as by dpmem; the memory is that of the second card."""
    check(node.setting(ONEAPI_DEVICE_SELECTOR="level_zero:1"), "second_alone")
