"""The linter reads whatever CPython compiles: the standard library and everything installed."""

import json
import re
import subprocess
import sysconfig
import warnings

import pytest


def compiles(path):
    """True if this CPython compiles the file."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(content, path, "exec")
    except (SyntaxError, ValueError, UnicodeError, RecursionError, MemoryError):
        return False
    return True


@pytest.mark.parametrize("folder", ["stdlib", "purelib"])
def test_no_crash_and_no_false_parse_error(folder, linter):
    path = sysconfig.get_path(folder)
    done = subprocess.run([*linter, path, "--output-format", "json"], capture_output=True, text=True, timeout=200)
    assert done.returncode in (0, 1, 2), done.stderr[-2000:]
    assert "panicked" not in done.stderr
    json.loads(done.stdout)
    refused = {
        match[1]
        for line in done.stderr.splitlines()
        if (match := re.search(r"`(/.*?\.(?:py|pyw))(?::\d+:\d+)?`", line))
    }
    assert [name for name in sorted(refused) if compiles(name)] == []
