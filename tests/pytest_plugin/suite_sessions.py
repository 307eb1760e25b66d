"""Test suites that run in a pytest of their own, with the plugin as an installed package brings it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SUITES = Path(__file__).parent / "suites"
_OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \[\d+\])? (\S+)", re.MULTILINE)


class Session:
    """How a suite ended: each test's outcome, what was printed, and what each failure said."""

    def __init__(self, done):
        self.exit_code = done.returncode
        self.text = done.stdout + done.stderr
        self.outcomes = {name.rpartition("::")[2]: outcome for outcome, name in _OUTCOME.findall(self.text)}
        parts = re.split(r"^_{3,} (?:ERROR at \w+ of )?(\S+) _{3,}$", self.text, flags=re.MULTILINE)
        self.failures = {
            name.rpartition(".")[2]: re.split(r"^={3,} .* ={3,}$", text, maxsplit=1, flags=re.MULTILINE)[0]
            for name, text in zip(parts[1::2], parts[2::2], strict=True)
        }


def run_suite(folder, source, *options, command=(sys.executable, "-m", "pytest"), conftest="", **variables):
    """Run a file of tests, given by its name in `suites` or as text."""
    folder.mkdir(parents=True, exist_ok=True)
    test_file = folder / "test_suite.py"
    if source.endswith(".py"):
        shutil.copyfile(SUITES / source, test_file)
    else:
        test_file.write_text(source)
    (folder / "conftest.py").write_text(conftest)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers --strict-config -p no:cacheprovider\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [*command, "-rA", "test_suite.py", *options],
        cwd=folder,
        env={**kept, "COLUMNS": "160", "PYTHONDONTWRITEBYTECODE": "1", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
    )
    return Session(done)
