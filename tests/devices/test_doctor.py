"""`dpmem doctor`: what it finds wrong here, that its own advice mends it, and what it says of simulated machines."""

import json
import shlex
import stat
import zipfile

import pytest

from .conftest import PREFIX, RUNTIME

STATUSES = {"ok", "warning", "failed", "skipped"}


def checks(done, *, code=None):
    assert code is None or done.code == code, done.stdout + done.stderr
    return {check["id"]: check for check in json.loads(done.stdout)}


def test_its_own_advice_makes_the_bare_environment_work(bare):
    before = checks(bare.dpmem("doctor", "--json"), code=1)
    icd = before["opencl.icd"]
    assert (icd["status"], before["default-device"]["status"]) == ("failed", "failed")
    assert before["dpnp.kernel"]["status"] == "skipped"
    assert icd["advice"] == f"export OCL_ICD_FILENAMES={RUNTIME}"
    # Followed to the letter, by a shell.
    command = f"{icd['advice']}\nexec {shlex.quote(str(PREFIX / 'bin/dpmem'))} doctor --json"
    after = checks(bare.run("sh", "-c", command), code=0)
    assert {name: after[name]["status"] for name in ("opencl.icd", "default-device", "dpnp.import", "dpnp.kernel")} == (
        dict.fromkeys(("opencl.icd", "default-device", "dpnp.import", "dpnp.kernel"), "ok")
    )


def test_every_check_has_the_keys_and_takes_its_time(mended):
    found = json.loads(mended.dpmem("doctor", "--json").stdout)
    assert len({check["id"] for check in found}) == len(found) >= 12
    for check in found:
        assert check.keys() == {"id", "status", "message", "advice", "duration_s"}
        assert check["status"] in STATUSES
        assert check["message"]
        assert check["advice"] or check["status"] != "failed", check


def test_checks_can_be_chosen_and_left_out(mended):
    only = checks(mended.dpmem("doctor", "--json", "--only", "env.selector,opencl.icd"), code=0)
    assert list(only) == ["env.selector", "opencl.icd"]
    skipped = checks(mended.dpmem("doctor", "--json", "--only", "env.selector", "--skip", "env.selector"), code=0)
    assert skipped == {}
    unknown = mended.dpmem("doctor", "--only", "opencl.icdd")
    assert (unknown.code, unknown.stdout) == (2, "")
    assert "`opencl.icdd`" in unknown.stderr
    assert "opencl.icd," in unknown.stderr


def test_selectors(mended):
    names = ("--only", "env.selector,env.ignored-variables", "--json")
    malformed = checks(mended.setting(ONEAPI_DEVICE_SELECTOR="gpu").dpmem("doctor", *names), code=1)["env.selector"]
    assert (malformed["status"], "has no `:`" in malformed["message"]) == ("failed", True)
    nothing = checks(mended.setting(ONEAPI_DEVICE_SELECTOR="*:gpu").dpmem("doctor", *names), code=1)["env.selector"]
    assert "matches no device; without it there would be opencl:cpu:0" in nothing["message"]
    assert nothing["advice"] == "unset ONEAPI_DEVICE_SELECTOR"
    ignored = checks(mended.setting(SYCL_DEVICE_FILTER="opencl:cpu").dpmem("doctor", *names), code=0)
    assert ignored["env.ignored-variables"]["status"] == "warning"
    assert ignored["env.ignored-variables"]["advice"].endswith("export ONEAPI_DEVICE_SELECTOR=opencl:cpu")


def test_an_aborting_import_is_told_with_the_last_words(mended):
    done = mended.setting(ONEAPI_DEVICE_SELECTOR="gpu").dpmem("doctor", "--json", "--only", "dpnp.import")
    check = checks(done, code=1)["dpnp.import"]
    assert "SIGABRT" in check["message"]
    assert "selector" in check["message"].lower(), check
    assert "ONEAPI_DEVICE_SELECTOR" in check["advice"]


def test_the_archive_is_private_and_names_nobody(mended):
    home = mended.folder / "wonderland"
    home.mkdir()
    target = mended.folder / "bundle.zip"
    target.write_text("an older one that everybody may read")
    target.chmod(0o644)
    alice = mended.setting(HOME=str(home), LOGNAME="alice", ZE_AFFINITY_MASK="0", LD_LIBRARY_PATH=f"{home}/lib")
    done = alice.setting(SECRET_TOKEN="hush", OCL_ICD_VENDORS="/data/alice/vendors").dpmem(
        "doctor", "--only", "env.selector", "--bundle", target
    )
    assert done.code == 0, done.stderr
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with zipfile.ZipFile(target) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert {"doctor.json", "machine.json"} <= texts.keys()
    everything = "".join(texts.values())
    for private in ("wonderland", "alice", "hush"):
        assert private not in everything
    machine = json.loads(texts["machine.json"])
    assert machine["variables"]["ZE_AFFINITY_MASK"] == "0"
    assert machine["variables"]["LD_LIBRARY_PATH"] == "~/lib"
    assert machine["variables"]["OCL_ICD_VENDORS"] == "/data/<user>/vendors"
    assert "dpctl" in machine["packages"]


def test_an_archive_that_cannot_be_written_is_an_error(mended):
    done = mended.dpmem("doctor", "--only", "env.selector", "--bundle", mended.folder / "no/such/folder.zip")
    assert (done.code, done.stdout) == (2, "")
    assert "No such file" in done.stderr


def test_the_function_is_the_same(mended):
    done = mended.python(
        "import dpmem\n"
        "(check,) = dpmem.doctor(only=['opencl.icd'])\n"
        "assert (check.id, check.status, check.advice) == ('opencl.icd', 'ok', ''), check\n"
        "assert 'opencl.icd' in str(check) and '<pre>' in check._repr_html_()\n"
    )
    assert done.code == 0, done.stderr


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ("laptop", {"default-device": "ok", "dpnp.kernel": "ok", "levelzero.preferred": "ok"}),
        ("workstation", {"default-device": "ok", "dpnp.kernel": "ok", "levelzero.preferred": "ok"}),
        ("node", {"default-device": "ok", "dpnp.kernel": "ok", "levelzero.preferred": "ok"}),
        ("opencl_only", {"default-device": "ok", "dpnp.kernel": "ok", "levelzero.preferred": "warning"}),
        ("cpu_only", {"default-device": "ok", "dpnp.kernel": "ok", "levelzero.preferred": "skipped"}),
        ("no_device", {"default-device": "failed", "opencl.icd": "failed", "dpnp.kernel": "skipped"}),
        ("gpu_without_driver", {"default-device": "warning", "levelzero.loader": "failed", "drm.permission": "ok"}),
    ],
    indirect=["machine"],
)
def test_simulated_machines(machine, expected):
    done = machine.dpmem("doctor", "--json")
    found = {check["id"]: check for check in json.loads(done.stdout)}
    assert {name: found[name]["status"] for name in expected} == expected, done.stdout
