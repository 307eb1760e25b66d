"""When dpmem points the OpenCL loader at pip's CPU runtime, and when it keeps its hands off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpmem._icd import choose_runtime, package_folder

RUNTIME = "env/lib/libintelocl.so"


@pytest.fixture
def machine(tmp_path):
    """A root folder with a Python environment in it; `choose` decides for it."""

    class Machine:
        def add(self, path, text=""):
            path = tmp_path / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return str(path)

        def choose(self, **environ):
            return choose_runtime(
                environ, prefixes=[str(tmp_path / "other"), str(tmp_path / "env")], root=str(tmp_path)
            )

    machine = Machine()
    machine.runtime = machine.add(RUNTIME)
    return machine


def test_a_machine_without_any_driver(machine):
    assert machine.choose() == machine.runtime
    # pip's own registration, with the folder of the build machine in it
    machine.add("env/etc/OpenCL/vendors/intel-cpu.icd", "/opt/build/lib/libintelocl.so\n")
    assert machine.choose() == machine.runtime
    assert machine.choose(OCL_ICD_FILENAMES="", ONEAPI_DEVICE_SELECTOR="*:cpu") == machine.runtime


def test_no_runtime_nothing_to_choose(machine):
    os.remove(machine.runtime)
    assert machine.choose() is None


@pytest.mark.parametrize(
    "name", ["OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "UR_ADAPTERS_FORCE_LOAD", "UR_ADAPTERS_SEARCH_PATH"]
)
def test_a_users_own_setting_wins(machine, name):
    assert machine.choose(**{name: "/x"}) is None


def test_a_registered_driver_is_enough(machine, tmp_path):
    machine.add("etc/OpenCL/vendors/a.icd", f"{machine.add('opt/driver.so')}\n")
    assert machine.choose() is None


@pytest.mark.parametrize("place", ["usr/lib/x86_64-linux-gnu", "lib64", "elsewhere", None])
def test_a_registered_driver_without_a_folder(machine, tmp_path, place):
    machine.add("etc/OpenCL/vendors/a.icd", "libdriver.so.1")
    assert machine.choose() == machine.runtime
    if place:
        machine.add(f"{place}/libdriver.so.1")
    else:
        machine.add("etc/ld.so.cache", "glibc-ld.so.cache1.1\0libdriver.so.1\0/somewhere/libdriver.so.1\0")
    assert machine.choose(LD_LIBRARY_PATH=str(tmp_path / "elsewhere")) is None


def test_an_environment_that_registers_its_runtime_properly(machine):
    machine.add("env/etc/OpenCL/vendors/intel-cpu.icd", machine.runtime)
    assert machine.choose() is None


def test_a_driver_that_sycl_passes_over(machine):
    machine.add("etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1")
    machine.add("usr/lib64/libnvidia-opencl.so.1")
    assert machine.choose() == machine.runtime


def test_a_gpu_through_level_zero(machine):
    machine.add("dev/dri/renderD128")
    assert machine.choose() == machine.runtime
    machine.add("usr/lib64/libze_loader.so.1")
    assert machine.choose() is None
    machine.add("sys/class/drm/renderD128/device/vendor", "0x1002\n")
    assert machine.choose() == machine.runtime
    machine.add("sys/class/drm/renderD128/device/vendor", "0x8086\n")
    assert machine.choose() is None


@pytest.mark.parametrize(
    ("node", "adapter"), [("nvidiactl", "libur_adapter_cuda.so.0"), ("kfd", "libur_adapter_hip.so.0")]
)
def test_a_gpu_through_another_backend(machine, node, adapter):
    machine.add(f"dev/{node}")
    assert machine.choose() == machine.runtime, "no adapter for it"
    machine.add(f"env/lib/{adapter}")
    assert machine.choose() is None


def test_a_package_is_found_without_importing_it(tmp_path, monkeypatch):
    (tmp_path / "found_not_imported").mkdir()
    (tmp_path / "found_not_imported" / "__init__.py").write_text("1/0")
    monkeypatch.syspath_prepend(tmp_path)
    assert package_folder("found_not_imported") == str(tmp_path / "found_not_imported")
    assert package_folder("surely_not_there") is None
    assert "found_not_imported" not in sys.modules


def test_programs_that_do_not_use_dpctl_see_nothing(python):
    python.environment.pop("OCL_ICD_VENDORS")
    if python.path == sys.executable:
        pytest.skip("this Python has dpctl")
    python.same("-c", "import os; print(sorted(os.environ))")


@pytest.mark.dpnp
def test_a_device_is_found(package):
    """Where no driver is registered, dpmem's choice is enough for a real kernel."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("OCL_", "ONEAPI_", "SYCL_", "LD_"))
    }
    environment["PYTHONPATH"] = str(package)
    source = "import dpctl; print(dpctl.get_num_devices())"
    plain = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=120)
    assert plain.returncode == 0, plain.stderr
    if plain.stdout != "0\n":
        pytest.skip("this machine has a driver of its own")
    source = "import dpnp; print(float((dpnp.arange(10.0) * 2).sum()))"
    for options in [], ["--no-summary"]:
        command = [sys.executable, "-m", "dpmem", "run", *options, "-c", source]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, "90.0\n"), done.stderr
        library = Path(sys.prefix, "lib/libintelocl.so")
        note = f"dpmem: no OpenCL driver is registered; using pip's CPU runtime (OCL_ICD_FILENAMES={library})\n"
        assert done.stderr.startswith(note)
        if options:
            assert done.stderr == note
