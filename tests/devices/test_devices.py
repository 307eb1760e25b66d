"""`dpmem devices` and its functions: what is listed, the default and its reason, on this machine and simulated ones."""

import json

import pytest

REPORTED = {
    "filter", "name", "backend", "type", "integrated", "default", "score", "capacity_bytes", "max_alloc_bytes",
    "free_bytes", "free_source", "free_trust",
}  # fmt: skip


def listed(done):
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_cpu_is_the_default_and_the_reason_names_the_variable(mended):
    rows = listed(mended.dpmem("devices", "--json"))
    cpu = rows[0]
    assert cpu.keys() >= REPORTED
    assert (cpu["filter"], cpu["type"], cpu["default"], cpu["integrated"]) == ("opencl:cpu:0", "cpu", True, True)
    assert 0 < cpu["free_bytes"] <= cpu["capacity_bytes"]
    assert (cpu["free_trust"], 0 < cpu["max_alloc_bytes"] <= cpu["capacity_bytes"]) == ("estimate", True)
    assert "the only device" in cpu["default_reason"]
    assert "OCL_ICD_FILENAMES" in cpu["default_reason"]
    assert "brings in opencl:cpu:0" in cpu["default_reason"]


def test_pips_runtime_is_used_as_by_a_run_and_that_is_said(bare):
    done = bare.dpmem("devices")
    assert done.code == 0, done.stderr
    assert "* opencl:cpu:0" in done.stdout
    assert "python alone finds no device" in done.stderr


def test_a_selector_that_hides_everything_is_named_with_what_it_takes_away(mended):
    done = mended.setting(ONEAPI_DEVICE_SELECTOR="*:gpu", SYCL_DEVICE_FILTER="gpu").dpmem("devices")
    assert done.code == 0, done.stderr
    assert "default: none" in done.stdout
    assert "ONEAPI_DEVICE_SELECTOR=*:gpu takes away opencl:cpu:0 (score 1300)" in done.stdout
    assert "SYCL_DEVICE_FILTER=gpu is ignored" in done.stdout


def test_without_dpctl_the_exit_code_is_2(mended):
    (mended.folder / "dpctl.py").write_text("raise ImportError('spoiled')")
    done = mended.setting(PYTHONPATH=str(mended.folder)).dpmem("devices", "--json")
    assert (done.code, done.stdout) == (2, "")
    assert "dpctl can't be imported: ImportError: spoiled" in done.stderr


def test_a_child_that_dies_or_hangs_is_told(mended):
    (mended.folder / "dpctl.py").write_text("import os; os.abort()")
    died = mended.setting(PYTHONPATH=str(mended.folder)).dpmem("devices")
    assert died.code == 2
    assert "SIGABRT" in died.stderr
    (mended.folder / "dpctl.py").write_text("import time; time.sleep(1000)")
    hung = mended.setting(PYTHONPATH=str(mended.folder)).dpmem("doctor", "--json", "--only", "dpctl.import")
    check = json.loads(hung.stdout)[0]
    assert (hung.code, check["status"]) == (1, "failed")
    assert "did not end within 3 s" in check["message"]


def test_probing_computes_on_the_device(mended):
    rows = listed(mended.dpmem("devices", "--json", "--probe"))
    assert [row["probe"] for row in rows] == ["ok"]


def test_the_functions_bring_nothing_up_in_their_own_process(mended):
    done = mended.python(
        "import dpmem, sys\n"
        "free, total = dpmem.mem_get_info()\n"
        "info = dpmem.mem_get_info('cpu')\n"
        "assert 0 < free <= total and info.total == total and info.free_trust == 'estimate', info\n"
        "chosen = dpmem.default_device()\n"
        "assert chosen.device.filter == 'opencl:cpu:0' and chosen.considered == [('opencl:cpu:0', 1300)], chosen\n"
        "assert [device.default for device in dpmem.devices()] == [True]\n"
        "assert 'dpctl' not in sys.modules\n"
        "assert '<code>' in chosen._repr_html_() and '<code>' in info._repr_html_()\n"
        "for wrong, error in (('gpu', ValueError), ('opencl:cpu:1', ValueError), (3, TypeError)):\n"
        "    try: dpmem.mem_get_info(wrong)\n"
        "    except error: pass\n"
        "    else: raise AssertionError(wrong)\n"
    )
    assert done.code == 0, done.stderr


def test_without_a_device_the_functions_say_so(bare):
    done = bare.python(
        "import dpmem\n"
        "assert dpmem.devices() == []\n"
        "chosen = dpmem.default_device()\n"
        "assert chosen.device is None and 'export OCL_ICD_FILENAMES=' in chosen.reason, chosen\n"
        "try: dpmem.mem_get_info()\n"
        "except RuntimeError as error: assert 'dpmem doctor' in str(error)\n"
        "else: raise AssertionError\n"
    )
    assert done.code == 0, done.stderr


def test_what_this_process_holds_bounds_what_is_free(mended):
    done = mended.python(
        "import dpmem, dpnp\n"
        "dpmem.start()\n"
        "x = dpnp.zeros(1 << 20)\n"
        "info = dpmem.mem_get_info(x.device)\n"
        "assert info.own_bytes == 8 << 20, info\n"
        "assert info.free_at_most_bytes == info.total - (8 << 20)\n"
        "assert '8 MiB' in repr(info)\n"
    )
    assert done.code == 0, done.stderr


def test_the_report_has_free_memory_of_its_devices(mended):
    done = mended.dpmem("run", "--no-summary", "--json", "-", "-c", "import dpnp; x = dpnp.ones(10)")
    device = json.loads(done.stdout.splitlines()[-1])["devices"][0]
    assert 0 < device["free_bytes"] <= device["capacity_bytes"]
    assert (device["free_trust"], bool(device["free_source"])) == ("estimate", True)


@pytest.mark.parametrize("machine", ["laptop", "workstation", "node"], indirect=True)
def test_a_gpu_that_two_backends_show_is_one(machine):
    rows = json.loads(machine.dpmem("devices", "--json").stdout)
    gpus = [row for row in rows if row["type"] == "gpu"]
    assert all(gpu["filter"].startswith("level_zero:gpu:") for gpu in gpus), gpus
    assert len(gpus) == {"laptop": 1, "workstation": 1, "node": 2}[machine.name]
    assert sorted(also for gpu in gpus for also in gpu["also"]) == [f"opencl:gpu:{n}" for n in range(len(gpus))]
    default = next(row for row in rows if row["default"])
    assert default["filter"] == "level_zero:gpu:0"
    assert f"score {default['score']}, the highest of" in default["default_reason"]
    assert "opencl:cpu:0 1300" in default["default_reason"]
    assert {gpu["integrated"] for gpu in gpus} == {machine.name == "laptop"}
    source = "meminfo MemAvailable" if machine.name == "laptop" else "Level Zero Sysman"
    assert {gpu["free_source"].split(" shows")[0] for gpu in gpus} == {source}


@pytest.mark.parametrize("machine", ["opencl_only"], indirect=True)
def test_a_gpu_through_opencl_has_no_free_memory_that_is_known(machine):
    rows = json.loads(machine.dpmem("devices", "--json").stdout)
    gpu = next(row for row in rows if row["type"] == "gpu")
    assert (gpu["filter"], gpu["default"], gpu["also"]) == ("opencl:gpu:0", True, [])
    assert (gpu["free_bytes"], gpu["free_trust"]) == (None, "unknown")


@pytest.mark.parametrize("machine", ["cpu_only", "no_device"], indirect=True)
def test_a_machine_without_a_gpu(machine):
    rows = json.loads(machine.dpmem("devices", "--json").stdout)
    assert [(row["filter"], row["default"]) for row in rows] == [("opencl:cpu:0", True)]


@pytest.mark.parametrize("machine", ["gpu_without_driver"], indirect=True)
def test_a_gpu_that_sycl_does_not_show_is_listed_with_the_reason(machine):
    rows = json.loads(machine.dpmem("devices", "--json").stdout)
    hidden = next(row for row in rows if row["filter"] is None)
    assert (hidden["type"], hidden["pci_address"], hidden["default"]) == ("gpu", "0000:03:00.0", False)
    assert "libze_loader.so.1 is not installed" in hidden["note"], hidden
    default = next(row for row in rows if row["default"])
    assert default["filter"] == "opencl:cpu:0"
    assert "the system shows Intel GPU 8086:56a0" in default["default_reason"]
