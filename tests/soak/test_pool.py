"""The long proofs of the pool: in-flight frees, random programs, running out a thousand times, dpnp's own tests."""

import ast
import json
from collections import Counter
from pathlib import Path

import pytest

from hangs import RuntimeHang

from .test_dpnp_suite import Suite

POOL = Path(__file__).parents[1] / "pool"
SCRIPTS = POOL / "scripts"
TIMEOUT_S = 1800
#: Running out: so many processes, so many times each, so long, and so many of them that may hang.
PROCESSES, TIMES, PROCESS_S, HUNG_MAX = 20, 50, 240, 4
#: Twelve of dpnp's test modules.
MODULES = [
    "test_binary_ufuncs",
    "test_fft",
    "test_indexing",
    "test_logic",
    "test_memory",
    "test_nanfunctions",
    "test_ndarray",
    "test_product",
    "test_random_state",
    "test_search",
    "test_sort",
    "test_sum",
]
pytestmark = pytest.mark.timeout(4 * TIMEOUT_S)


def pooled(environment, folder, name, *arguments, options=("--pool",), timeout=TIMEOUT_S):
    """Run a script under the pool, freed blocks poisoned; how it ended, and the report's pool."""
    report = folder / "report.json"
    command = [*environment.dpmem_run("--json", report, "--no-summary", *options), str(SCRIPTS / name)]
    ended = environment.run([*command, *map(str, arguments)], folder / "pooled", timeout, DPMEM_TEST_POISON="1")
    return ended, json.loads(report.read_text())["pool"]


@pytest.mark.parametrize("how", [[], ["in_order"], ["queue_left"]], ids=["out_of_order", "in_order", "queue_left"])
def test_memory_in_flight_200_times(environment, tmp_path, figure, how):
    ended, pool = pooled(environment, tmp_path, "freed_in_flight.py", 200, *how)
    assert ended.stdout.startswith("wrong 0 of 200"), ended
    assert pool["hits"] > 0
    figure(
        f"memory freed in flight, poisoned, {' '.join(how).replace('_', ' ') or 'out of order'}", ended.stdout.strip()
    )


def test_random_programs_of_50_seeds(environment, tmp_path, figure):
    # What each thread computes doesn't depend on the others, so the reference needs one at a time only.
    script = [*environment.python, str(SCRIPTS / "random_operations.py"), "50", "1", "60"]
    plain = environment.run(script, tmp_path / "plain", TIMEOUT_S)
    arguments = ("random_operations.py", "50", "4", "60")
    ended, pool = pooled(environment, tmp_path, *arguments, timeout=PROCESS_S)
    assert plain.exit_code == ended.exit_code == 0, (plain, ended)
    assert ended.stdout == plain.stdout
    figure("random programs, 50 seeds, 4 threads, 3 queues, 2 contexts", f"same hash, {pool['hits']:,} hits")


@pytest.mark.parametrize("way", ["opencl", "v1", "v2"])
def test_random_programs_on_a_simulated_gpu(environment, opencl_only, workstation, tmp_path, figure, way):
    machine = opencl_only if way == "opencl" else workstation.adapter(way)
    machine = machine.within(environment.prefix)
    program, report = SCRIPTS / "random_operations.py", tmp_path / "report.json"
    plain = machine.run(program, "8", "1", "30", timeout=TIMEOUT_S)
    command = ("run", "--no-summary", "--json", report, "--pool", program, "8", "4", "30")
    pooling = machine.setting(DPMEM_TEST_POISON="1")
    ended = pooling.dpmem(*command, timeout=PROCESS_S)
    assert plain.exit_code == ended.exit_code == 0, (plain, ended)
    assert ended.stdout == plain.stdout
    facts = json.loads(report.read_text())
    assert ":gpu:" in next(row["device"] for row in facts["usm"] if row["kind"] == "device")
    assert facts["pool"]["hits"] > 200
    figure(f"random programs, 8 seeds, 4 threads, simulated GPU, {way}", f"same hash, {facts['pool']['hits']:,} hits")


@pytest.mark.parametrize("options", [(), ("--pool",)], ids=["limit", "pool"])
def test_running_out_a_thousand_times(environment, tmp_path, figure, options):
    # So long a test isn't run again as a whole ("Hangs" in docs/field-notes.md): the process is.
    caught, hung = Counter(), 0
    for number in range(PROCESSES + HUNG_MAX):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            ended, _ = pooled(environment, folder, "survives.py", TIMES, options=options, timeout=PROCESS_S)
        except RuntimeHang:
            hung += 1
            assert hung <= HUNG_MAX, f"{hung} of {number + 1} processes hung"
            continue
        assert ended.exit_code == 0, ended
        counted, reserved, allocated = ended.stdout.rsplit(" ", 2)
        assert int(reserved) - int(allocated) < 100_000
        caught.update(ast.literal_eval(counted))
        if number + 1 - hung == PROCESSES:
            break
    assert caught.total() == PROCESSES * TIMES
    figure(
        f"running out, {' '.join(options) or 'limit only'}",
        f"{dict(caught)}, nothing left; {hung} of {number + 1} processes hung",
    )


@pytest.mark.parametrize("module", MODULES)
def test_dpnps_tests_with_freed_blocks_poisoned(environment, tmp_path, figure, module):
    suite = Suite(environment, module, tmp_path)
    plain, pool = suite.plain(), suite.under_run("--pool", DPMEM_TEST_POISON="1")
    differing = {name for name in plain["outcomes"] if plain["outcomes"][name] != pool["outcomes"].get(name)}
    if differing:
        again = suite.plain("again")
        unsteady = {name for name in differing if plain["outcomes"][name] != again["outcomes"].get(name)}
        assert differing <= unsteady, sorted(differing - unsteady)[:20]
    counted = Counter(outcome for outcomes in plain["outcomes"].values() for outcome in outcomes)
    # A module of a dozen small blocks (test_memory) has none at rest again before it ends.
    assert pool["report"]["pool"]["hits"] > 0 or pool["report"]["pool"]["cached_bytes"] > 0
    figure(f"{module}, poisoned", f"{dict(counted)}, {pool['report']['pool']['hits']:,} hits")
