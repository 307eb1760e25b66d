"""The report's `live` rows and the summary's table, from whole programs under `dpmem run`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DPMEM = Path(sys.executable).with_name("dpmem")


@pytest.fixture
def report(tmp_path):
    def run(source, exit_code=0):
        program, out = tmp_path / "train.py", tmp_path / "report.json"
        program.write_text(source)
        done = subprocess.run(
            [DPMEM, "run", "--json", out, program], capture_output=True, text=True, timeout=120, env=dict(os.environ)
        )
        assert done.returncode == exit_code, done.stderr
        return json.loads(out.read_text()), done.stderr

    return run


def rows(report, least=1 << 16):
    return [row for row in report["live"] if row["bytes"] >= least]


def test_names_of_the_main_module_are_still_there(report):
    found, screen = report("import dpnp\nkept = [dpnp.ones(100_000) for _ in range(14)]\n")
    (row,) = rows(found)
    assert (row["state"], row["count"], row["bytes"]) == ("referenced", 14, 14 * 800_000)
    assert row["holders"][0] == {"kind": "container", "path": "__main__.kept[0]", "bytes": 800_000}
    assert len(row["holders"]) == 10
    assert row["more_holders"] == 4
    # The extension modules hold two blocks of a byte that they asked for on that line.
    assert "held by __main__.kept[0] (container), and 14 more" in screen
    assert "referenced" in screen


def test_one_holder_of_many_blocks_is_one_holder(report):
    source = """
import dpnp
class Model: pass
model = Model()
for size in (100_000, 200_000):
    model.weights = dpnp.ones(size)
view = model.weights[:5]
"""
    found, _ = report(source)
    (row,) = rows(found)
    assert row["holders"] == [
        {"kind": "view", "path": "__main__.view", "bytes": 1_600_000},
        {"kind": "attribute", "path": "__main__.model.weights", "bytes": 1_600_000},
    ]


def test_a_daemon_threads_frame_and_an_uncaught_exception(report):
    source = """
import threading
import dpnp
ready = threading.Event()
def serve():
    buffer = dpnp.ones(100_000)
    ready.set()
    threading.Event().wait()
threading.Thread(target=serve, name="server", daemon=True).start()
ready.wait()
def main():
    work = dpnp.ones(200_000)
    raise ValueError("bad")
main()
"""
    found, screen = report(source, exit_code=1)
    by_size = {row["bytes"]: [(holder["kind"], holder["path"]) for holder in row["holders"]] for row in rows(found)}
    assert by_size[800_000] == [("thread", "thread 'server': train.py serve(): buffer")]
    ((kind, path), *_) = by_size[1_600_000]
    assert kind == "exception"
    assert path.startswith("sys.last_")
    assert path.endswith("main(): work")
    assert f"held by {path} (exception)" in screen


def test_a_search_that_fails_costs_the_holders_only(report):
    # The program has spoiled what the search begins with.
    source = """
import sys, dpnp
kept = dpnp.ones(100_000)
sys._current_frames = None
"""
    found, screen = report(source)
    assert "holders could not be searched for" in screen
    (row,) = rows(found)
    assert row["holders"] == []
