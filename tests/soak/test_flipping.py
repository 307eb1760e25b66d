"""Recording goes on and off again while threads allocate: no crash, no call lost or repeated, a sane ledger."""

import json
import re
from collections import Counter

import pytest

from .environments import PROGRAMS

FLIPS = 2000
TRACED_FLIPS = 200
TIMEOUT_S = 1800
#: By how much the process may grow; the smallest block that a lost free would leave behind often is 1 MB.
GROWTH_BYTES = 20_000_000
#: Blocks of the program that are no thread's: one kept, and fifty at the end.
OTHER_BLOCKS = 51
KINDS = 3
pytestmark = pytest.mark.timeout(TIMEOUT_S + 100)

_CALL = re.compile(
    r"<--- ur(?:USM(?P<kind>Device|Host|Shared)Alloc\(.*\.ppMem = \w+ \((?P<made>0x[0-9a-f]+)\)"
    r"|USMFree\(.*\.pMem = (?P<freed>0x[0-9a-f]+))\) -> UR_RESULT_SUCCESS;"
)


def flip(environment, folder, flips, **variables):
    program = str(PROGRAMS / "flipping.py")
    ended = environment.run([*environment.python, program, str(flips)], folder, TIMEOUT_S, **variables)
    assert ended.exit_code == 0, ended.stderr
    line = next(line for line in ended.stdout.splitlines() if line.startswith("{"))
    found = json.loads(line)
    assert found["flips"] == flips
    assert found["wrong"] == 0, "blocks with another block's content"
    assert found["insane"] == 0, "counters that no ledger can have"
    assert found["recorded"] > 0
    assert found["last"] == [31, 50, 20, 34_096]
    return found, ended.stdout


def test_recording_flips_while_threads_allocate(environment, tmp_path, figure):
    found, _ = flip(environment, tmp_path, FLIPS)
    assert found["growth_bytes"] < GROWTH_BYTES
    figure(
        f"{FLIPS:,} times start and stop while 4 threads allocate",
        f"{found['blocks']:,} blocks right, {found['recorded']:,} allocations recorded, "
        f"process grew by {max(found['growth_bytes'], 0) / 1e6:.1f} MB",
    )


def test_every_call_reaches_the_runtime_once(environment, tmp_path, figure):
    """The runtime's own trace beside it: each block is made and freed once, and none but the program's and probes."""
    found, trace = flip(environment, tmp_path, TRACED_FLIPS, SYCL_UR_TRACE="2")
    made, freed = Counter(), Counter()
    for call in _CALL.finditer(trace):
        if call["made"]:
            made[call["made"]] += 1
        else:
            freed[call["freed"]] += 1
    assert made == freed
    probes = made.total() - found["blocks"] - OTHER_BLOCKS
    # at least one of each kind at each start; more where the threads' own calls came between
    assert probes >= KINDS * (TRACED_FLIPS + 1)
    assert probes % KINDS == 0
    figure(
        f"{TRACED_FLIPS} times start and stop beside `SYCL_UR_TRACE=2`",
        f"{made.total():,} blocks, each made once and freed once, {probes:,} of them probes",
    )
