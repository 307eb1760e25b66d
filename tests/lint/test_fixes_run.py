"""Every fix on the corpus runs on real dpnp: same results before and after, and less work where promised.

Bytes and copies are those of `dpmem run`, whose counts the truth tests compare with the runtime's own trace.
"""

import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
RUNNER = HERE / "run_program.py"
CORPUS = HERE.parents[1] / "crates" / "dpmem-lint" / "tests" / "corpus"

# Programs that cannot be run as they are: they need an argument, another package, or another device.
NOT_RUN = {"faulty_tensor_while", "faulty_tensor_async"}
# Where a fix changes what a program gives, which is why it is unsafe.
NARROWER = "DPM306"
# `numpy.f(device array)` raises, or gives a NumPy scalar where dpnp gives an array.
NOT_COMPARED = "DPM402"


def lint(command, path, *options):
    """Findings of a file, by `dpmem lint`."""
    done = subprocess.run(
        [*command, str(path), "--output-format", "json", *options], capture_output=True, text=True, timeout=60
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def run(path, environment, folder):
    """What a program left behind, and what dpmem says it did: bytes allocated and number of copies."""
    report = folder / "report.json"
    dpmem = pathlib.Path(sys.executable).with_name("dpmem")
    done = subprocess.run(
        [str(dpmem), "run", "--no-summary", "--json", str(report), str(RUNNER), str(path)],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )
    at = done.stdout.find('{"error"')
    assert at >= 0, done.stderr[-2000:]
    answer = json.JSONDecoder().raw_decode(done.stdout, at)[0]
    counts = json.loads(report.read_text())
    assert counts["recording"]["complete"], counts["recording"]
    allocated = sum(row["allocated_bytes"] for row in counts["usm"])
    return answer, allocated, sum(row["count"] for row in counts["transfers"])


def with_fixes():
    return sorted(path for path in CORPUS.rglob("faulty_*.py") if path.stem not in NOT_RUN)


def test_each_rule_that_promises_fixes_has_them(linter):
    found = {(each["code"], each["fix"]["safety"]) for each in lint(linter, CORPUS) if each["fix"]}
    unsafe = {(code, "unsafe") for code in ("DPM202", "DPM208", "DPM301", "DPM306", "DPM402")}
    assert found == {("DPM305", "safe"), ("DPM401", "safe"), *unsafe}


@pytest.mark.parametrize("option", ["--fix", "--unsafe-fixes"])
@pytest.mark.parametrize("path", with_fixes(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_same_results_and_no_more_work(path, option, linter, environment, tmp_path):
    fixable = [finding for finding in lint(linter, path) if finding["fix"]]
    safe = [finding for finding in fixable if finding["fix"]["safety"] == "safe"]
    if option == "--fix":
        fixable = safe
    elif fixable == safe:
        fixable = []  # the other option's business
    if not fixable:
        return
    codes = {finding["code"] for finding in fixable}
    copy = tmp_path / path.name
    copy.write_text(path.read_text())
    lint(linter, copy, option)
    assert copy.read_text() != path.read_text()
    assert not [finding for finding in lint(linter, copy) if finding["fix"] and finding in fixable]

    before, bytes_before, copies_before = run(path, environment, tmp_path)
    after, bytes_after, copies_after = run(copy, environment, tmp_path)

    if NOT_COMPARED in codes:
        assert after["error"] in (None, before["error"])
        return
    assert after["error"] == before["error"]
    for name, value in before["values"].items():
        new = after["values"].get(name)
        if NARROWER in codes and isinstance(new, dict) and "shape" in new:
            assert new["shape"] == value["shape"]
        else:
            assert new == value, name
    if codes & {"DPM301", NARROWER} and bytes_before:
        assert bytes_after < bytes_before
    if "DPM401" in codes and copies_before:
        assert copies_after < copies_before
    if codes == {"DPM305"}:
        assert bytes_after <= bytes_before
