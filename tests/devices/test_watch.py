"""`dpmem watch`: what is seen of a program from outside, and how samples are written."""

import csv
import io
import json
import os
import signal

from .conftest import PREFIX

#: Holds memory, says so, and goes on when it reads a line.
_HOLDER = """
import sys, dpnp
x = dpnp.zeros(1 << 20)
y = dpnp.zeros(1 << 17)
del y
x.sycl_queue.wait()
print("ready", flush=True)
sys.stdin.readline()
"""
_FORK = "os.fork() or os._exit(0); os.wait(); "
_LEAK = """
import sys, time, dpnp
kept = []
print("ready", flush=True)
while True:
    kept.append(dpnp.zeros(1 << 17))
    time.sleep(0.02)
"""


def dpmem_run(shell, program, *options):
    import subprocess

    words = [str(PREFIX / "bin/dpmem"), "run", "--no-summary", *options, "-c", program]
    process = shell.start(*words, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def samples(done):
    assert done.code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_program_under_dpmem_run_is_seen_from_outside(mended):
    program = dpmem_run(mended, _HOLDER)
    try:
        words = ("watch", "--format", "json", "--count", "1", "--interval-ms", "100")
        (sample,) = samples(mended.dpmem(*words, "--pid", program.pid))
        (row,) = [row for row in sample["usm"] if row["kind"] == "device"]
        assert (row["pid"], row["current_bytes"], row["device"]) == (program.pid, 8 << 20, "opencl:cpu:0")
        assert row["peak_bytes"] >= 9 << 20
        assert _HOLDER.split()[0] in row["command"]
        assert any(process["pid"] == program.pid for process in sample["processes"])
        (everybody,) = samples(mended.dpmem(*words))
        assert program.pid in {row["pid"] for row in everybody["usm"]}
        device = everybody["devices"][0]
        assert 0 < device["free_bytes"] < device["total_bytes"]
        assert (device["used_bytes"] + device["free_bytes"], device["trust"]) == (device["total_bytes"], "estimate")
    finally:
        program.communicate("\n", timeout=60)
    assert program.returncode == 0
    (after,) = samples(mended.dpmem(*words))
    assert program.pid not in {row["pid"] for row in after["usm"]}


def test_what_a_pool_holds_is_seen_beside_what_is_in_use(mended):
    # A forked child, which has no pool, says nothing in its parent's name.
    code = "import os\n" + _HOLDER.replace("x.sycl", _FORK + "x.sycl")
    program = dpmem_run(mended, code, "--pool", "--limit", "1GiB")
    try:
        words = ("watch", "--count", "1", "--pid", program.pid)
        (sample,) = samples(mended.dpmem(*words, "--format", "json"))
        (usm,) = [row for row in sample["usm"] if row["kind"] == "device"]
        (pool,) = [row for row in sample["pools"] if row["device"] != "host"]
        assert (pool["pid"], pool["device"], pool["limit_bytes"]) == (program.pid, "opencl:cpu:0", 1 << 30)
        assert usm["current_bytes"] == 8 << 20
        assert 9 << 20 <= pool["reserved_bytes"] <= pool["peak_reserved_bytes"] < 20 << 20
        table = mended.dpmem(*words).stdout
        (line,) = [line for line in table.splitlines() if f"{program.pid} reserved  " in line]
        assert (line.split()[2], "limit 1 GiB" in line) == ("-", True), table
        rows = csv.reader(io.StringIO(mended.dpmem(*words, "--format", "csv").stdout))
        (row,) = [row for row in rows if row[2] == "opencl:cpu:0 reserved"]
        assert (row[3:5], float(row[5]) >= 9) == ([str(program.pid), "1024.00"], True)
    finally:
        program.communicate("\n", timeout=60)


def test_a_pool_is_seen_without_a_recording_and_until_it_is_switched_off(mended):
    code = (
        "import os, subprocess, sys, dpmem, dpnp, json\n"
        "def pools():\n"
        f"    words = [{str(PREFIX / 'bin/dpmem')!r}, 'watch', '--count', '1', '--format', 'json', '--pid']\n"
        "    words.append(str(os.getpid()))\n"
        "    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)['pools']\n"
        "dpmem.enable_pool()\n"
        "x = dpnp.zeros(1 << 20)\n"
        "(pool,) = [row for row in pools() if row['device'] != 'host']\n"
        "assert pool['reserved_bytes'] == dpmem.memory_reserved() >= 8 << 20, pool\n"
        "assert pool['limit_bytes'] is None, pool\n"
        "dpmem.disable_pool()\n"
        "assert pools() == []\n"
    )
    done = mended.python(code)
    assert done.code == 0, done.stderr


def test_a_program_that_called_start_is_seen_until_it_stops(mended):
    code = (
        "import os, subprocess, sys, dpmem, dpnp, json\n"
        "def usm():\n"
        f"    words = [{str(PREFIX / 'bin/dpmem')!r}, 'watch', '--count', '1', '--format', 'json', '--pid']\n"
        "    words.append(str(os.getpid()))\n"
        "    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)['usm']\n"
        "x = dpnp.zeros(1 << 20)\n"
        "assert usm() == []\n"
        "dpmem.start()\n"
        "y = dpnp.zeros(1 << 20)\n"
        "assert [row['current_bytes'] for row in usm() if row['kind'] == 'device'] == [16 << 20], usm()\n"
        "dpmem.stop()\n"
        "assert usm() == []\n"
    )
    done = mended.python(code)
    assert done.code == 0, done.stderr


def test_a_killed_program_leaves_nothing_to_be_seen(mended):
    program = dpmem_run(mended, _HOLDER)
    program.kill()
    program.communicate(timeout=60)
    (sample,) = samples(mended.dpmem("watch", "--format", "json", "--count", "1"))
    assert program.pid not in {row["pid"] for row in sample["usm"]}


def test_a_steady_climb_is_said_in_words(mended):
    program = dpmem_run(mended, _LEAK)
    try:
        done = mended.dpmem("watch", "--count", "14", "--interval-ms", "150", "--pid", program.pid)
    finally:
        program.kill()
        program.communicate(timeout=60)
    assert done.code == 0, done.stderr
    last = done.stdout.rstrip().rpartition("\n\n")[2]
    assert "USM device" in last
    assert "climbs steadily" in last, done.stdout


def test_csv_has_one_header_and_units(mended):
    done = mended.dpmem("watch", "--format", "csv", "--count", "2", "--interval-ms", "50")
    assert done.code == 0, done.stderr
    header, *rows = csv.reader(io.StringIO(done.stdout))
    assert header[:7] == [
        "Timestamp", "DeviceId", "Device", "ProcessId",
        "Memory Total (MiB)", "Memory Used (MiB)", "Memory Free (MiB)",
    ]  # fmt: skip
    devices = [dict(zip(header, row, strict=True)) for row in rows if row[3] == "N/A"]
    assert len(devices) == 2
    total, used, free = (float(devices[0][f"Memory {what} (MiB)"]) for what in ("Total", "Used", "Free"))
    assert abs(total - used - free) < 0.02


def test_a_closed_pipe_and_an_interrupt_end_quietly(mended):
    words = [str(PREFIX / "bin/dpmem"), "watch", "--interval-ms", "20"]
    process = mended.start(*words)
    process.stdout.readline()
    process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (0, "")
    process.stderr.close()
    process = mended.start(*words)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_a_process_that_is_not_there_is_an_error(mended):
    done = mended.dpmem("watch", "--pid", "4194304", "--count", "1")
    assert (done.code, done.stdout) == (2, "")
    assert "no process 4194304" in done.stderr


def test_what_is_published_is_closed_to_others(mended):
    program = dpmem_run(mended.setting(XDG_RUNTIME_DIR=""), _HOLDER)
    file = f"/tmp/dpmem-{os.geteuid()}/{program.pid}"
    try:
        assert os.stat(file).st_mode & 0o777 == 0o600
        assert os.stat(os.path.dirname(file)).st_mode & 0o777 == 0o700
    finally:
        program.communicate("\n", timeout=60)
    assert not os.path.exists(file)
