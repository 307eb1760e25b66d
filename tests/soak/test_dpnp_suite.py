"""dpnp's own tests pass, fail and skip the same with and without recording."""

import json
from collections import Counter
from pathlib import Path

import pytest

from .environments import HERE

#: Test modules of the installed dpnp: more than 20,000 tests.
MODULES = [
    "test_binary_ufuncs",
    "test_fft",
    "test_indexing",
    "test_logic",
    "test_memory",
    "test_nanfunctions",
    "test_ndarray",
    "test_product",
    "test_random",
    "test_random_state",
    "test_search",
    "test_sort",
    "test_sum",
    "test_sycl_queue",
    "test_usm_type",
]
TIMEOUT_S = 1800
pytestmark = pytest.mark.timeout(4 * TIMEOUT_S)


class Suite:
    """One module of dpnp's tests, run by plain pytest as often as wanted."""

    def __init__(self, environment, module: str, folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        path = environment.packages / f"dpnp/tests/{module}.py"
        root = folder / "root"
        root.mkdir()
        # nothing of this project's pytest settings
        self._words = ["-m", "pytest", "-c", "/dev/null", f"--rootdir={root}", "-p", "no:cacheprovider"]
        self._words += ["-q", "--no-header", "--tb=no", "-p", "soak_outcomes", str(path)]

    def plain(self, name: str = "plain") -> dict:
        return self._run(name, self._environment.python, self._words)

    def tracked(self) -> dict:
        found = self._run("tracked", self._environment.python, [*self._words, "-p", "soak_tracking"])
        recorded = json.loads((self._folder / "tracked/recorded.json").read_text())
        assert recorded["tracking"], "recording ended before the tests did"
        return found | {"allocations": recorded["stats"]["allocation.all.allocated"]}

    def under_run(self, *options: str, **variables: str) -> dict:
        report = self._folder / "report.json"
        command = self._environment.dpmem_run("--json", report, "--no-summary", *options)
        found = self._run("run", command, self._words, **variables)
        return found | {"report": json.loads(report.read_text())}

    def _run(self, name: str, command: list[str], words: list[str], **variables: str) -> dict:
        folder = self._folder / name
        outcomes = folder / "outcomes.json"
        ended = self._environment.run(
            [*command, *words],
            folder,
            TIMEOUT_S,
            PYTHONPATH=str(HERE / "plugins"),
            SOAK_OUTCOMES=str(outcomes),
            SOAK_RECORDED=str(folder / "recorded.json"),
            **variables,
        )
        assert outcomes.exists(), f"{name}: pytest did not end, exit code {ended.exit_code}:\n{ended.stderr[-2000:]}"
        found = json.loads(outcomes.read_text())
        assert ended.exit_code == found["exit"], f"{name}: {ended.stderr[-2000:]}"
        return found


@pytest.mark.parametrize("module", MODULES)
def test_same_outcomes(environment, module, tmp_path, figure):
    suite = Suite(environment, module, tmp_path)
    plain, tracked, run = suite.plain(), suite.tracked(), suite.under_run()
    assert plain["outcomes"], "no tests"

    unsteady: set[str] = set()
    differing = [_differences(plain, other) for other in (tracked, run)]
    if any(differing):
        # only what is steady without dpmem can tell something
        unsteady = set(_differences(plain, suite.plain("plain again")))
    for different in differing:
        assert {name: both for name, both in different.items() if name not in unsteady} == {}

    count = Counter(outcomes[-1].split()[-1] for outcomes in plain["outcomes"].values())
    recorded = run["report"]["recording"]
    figure(
        module,
        ", ".join(f"{count[outcome]:,} {outcome}" for outcome in sorted(count))
        + f"; the same with `dpmem.start()` ({tracked['allocations']:,} allocations) and under `dpmem run`"
        + ("" if recorded["complete"] else f" (record incomplete: {recorded['reason']})")
        + (f"; {len(unsteady)} tests differ between two plain runs" if unsteady else ""),
    )
    assert tracked["allocations"] > 0
    assert recorded["events"] > 0


def _differences(left: dict, right: dict) -> dict:
    ours, theirs = left["outcomes"], right["outcomes"]
    return {
        name: (ours.get(name), theirs.get(name))
        for name in ours.keys() | theirs.keys()
        if ours.get(name) != theirs.get(name)
    }
