"""Findings about devices in `dpmem run`: the reason and the remedy for a program that died, or ran elsewhere."""

import json

import pytest


def found(done, code):
    report = json.loads(done.stdout.splitlines()[-1])
    return [finding for finding in report["findings"] if finding["code"] == code]


def run(shell, program, *, name="program.py"):
    (shell.folder / name).write_text(program)
    return shell.dpmem("run", "--json", "-", name)


def test_mixed_queues_name_arrays_queues_and_lines(mended):
    program = (
        "import dpctl, dpnp\n"
        "def mix(left, right):\n"
        "    return left * right\n"
        "here = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())\n"
        "there = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())\n"
        "mix(here, there)\n"
    )
    done = run(mended, program)
    assert done.code == 1
    (finding,) = found(done, "DPM104")
    assert (finding["line"], finding["file"]) == (3, str(mended.folder / "program.py"))
    assert "`left` on queue 1 of opencl:cpu:0, made at program.py:4" in finding["message"]
    assert "`right` on queue 2 of opencl:cpu:0, made at program.py:5" in finding["message"]
    assert "`right.to_device(left.sycl_queue)`" in finding["advice"]
    # The remedy stands under the traceback, and it is one.
    traceback, _, rest = done.stderr.partition("ExecutionPlacementError")
    assert "Traceback" in traceback
    assert "to_device" in rest
    mended_program = program.replace("left * right", "left * right.to_device(left.sycl_queue)")
    done = run(mended, mended_program)
    assert (done.code, found(done, "DPM104")) == (0, [])


def test_an_error_that_the_program_handles_is_no_finding(mended):
    done = run(
        mended,
        "import dpctl, dpnp\n"
        "a, b = (dpnp.ones(3, sycl_queue=dpctl.SyclQueue()) for _ in range(2))\n"
        "try: a + b\n"
        "except Exception: pass\n",
    )
    assert (done.code, found(done, "DPM104")) == (0, [])


@pytest.mark.parametrize("call", ["dpnp.ones(3, device='gpu')", "dpctl.SyclQueue('gpu')", "dpctl.SyclDevice('gpu')"])
def test_a_filter_string_for_a_device_that_is_not_there(mended, call):
    done = run(mended, f"import dpctl, dpnp\n\n{call}\n")
    assert done.code == 1
    (finding,) = found(done, "DPM103")
    assert finding["line"] == 3
    assert '"gpu"; devices here: opencl:cpu:0' in finding["message"]
    assert found(done, "DPM101") == []


def test_no_device_at_all(mended):
    hidden = mended.setting(ONEAPI_DEVICE_SELECTOR="*:gpu")
    done = run(hidden, "import dpnp\ndpnp.ones(3)\n")
    assert done.code == 1
    (finding,) = found(done, "DPM101")
    assert finding["line"] == 2
    assert "ONEAPI_DEVICE_SELECTOR=*:gpu is in force" in finding["message"]
    assert finding["advice"].startswith("unset ONEAPI_DEVICE_SELECTOR")


def test_variables_without_effect_are_found_in_programs_that_use_sycl(mended):
    shell = mended.setting(SYCL_DEVICE_FILTER="level_zero:gpu")
    done = run(shell, "import dpnp\nx = dpnp.ones(3)\n")
    assert done.code == 0
    assert "SYCL_DEVICE_FILTER=level_zero:gpu" in found(done, "DPM103")[0]["message"]
    (cpu,) = found(done, "DPM102")
    assert (cpu["line"], cpu["device"]) == (2, "opencl:cpu:0")
    assert run(shell, "print('no SYCL here')\n").stdout.count("DPM10") == 0


def test_a_clean_program_has_none(mended):
    for shell in (mended, mended.setting(ONEAPI_DEVICE_SELECTOR="*:cpu")):
        done = run(shell, "import dpnp\nx = dpnp.ones(3)\n")
        assert json.loads(done.stdout)["findings"] == []


def test_a_malformed_selector_is_said_before_the_process_aborts(mended):
    done = run(mended.setting(ONEAPI_DEVICE_SELECTOR="gpu"), "import dpnp\nx = dpnp.ones(3)\n")
    assert "ONEAPI_DEVICE_SELECTOR=gpu is malformed (`gpu` has no `:`)" in done.stderr
    plain = mended.setting(ONEAPI_DEVICE_SELECTOR="gpu").python("import dpnp\nx = dpnp.ones(3)\n")
    assert done.code == plain.code


@pytest.mark.parametrize("machine", ["gpu_without_driver"], indirect=True)
def test_a_gpu_that_sycl_does_not_show(machine):
    done = machine.dpmem("run", "--json", "-", "-c", "import dpnp; x = dpnp.ones(3)")
    report = json.loads(done.stdout.splitlines()[-1])
    assert "DPM102" in [finding["code"] for finding in report["findings"]]
