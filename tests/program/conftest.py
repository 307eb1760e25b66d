"""Programs run twice, by plain python and by `dpmem run`, on every CPython that is at hand."""

import json
import os
import re
import subprocess
import zipfile

import pytest

from interpreters import interpreters


def pytest_configure(config):
    config.addinivalue_line("markers", "dpnp: needs dpnp and a device")


def pytest_generate_tests(metafunc):
    if "version" in metafunc.fixturenames:
        metafunc.parametrize("version", interpreters(), scope="session")


def without_addresses(output):
    return re.sub("0x[0-9a-f]{8,}", "0x...", output.decode(errors="backslashreplace"))


class Interpreter:
    """One python: runs programs with and without dpmem in a folder of their own."""

    def __init__(self, version, folder, package):
        self.version = tuple(map(int, version.split(".")))
        self.path = interpreters()[version]
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(package),
            "PYTHONDONTWRITEBYTECODE": "1",
            # Where it looks anyway; named, so that dpmem leaves the choice of an OpenCL driver alone.
            "OCL_ICD_VENDORS": "/etc/OpenCL/vendors",
        }

    def write(self, name, source):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    def words(self, *words, options=(), flags=(), dpmem=True):
        own = ["-m", "dpmem", "run", *options] if dpmem else []
        return [self.path, *flags, *own, *map(str, words)]

    def start(self, *words, options=(), flags=(), dpmem=True, env=None, **keywords):
        keywords.setdefault("cwd", self.folder)
        for stream in ("stdout", "stderr"):
            keywords.setdefault(stream, subprocess.PIPE)
        environment = {**self.environment, **(env or {})}
        command = self.words(*words, options=options, flags=flags, dpmem=dpmem)
        return subprocess.Popen(command, env=environment, **keywords)

    def run(self, *words, input=b"", **keywords):
        with self.start(*words, stdin=subprocess.PIPE, **keywords) as process:
            try:
                out, err = process.communicate(input, timeout=60)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def recorded(self, *words, options=("--no-summary",), **keywords):
        """Runs under dpmem; the process and its report."""
        report = self.folder / "report.json"
        done = self.run(*words, options=("--json", report, *options), **keywords)
        return done, json.loads(report.read_text())

    def same(self, *words, **keywords):
        """Asserts that dpmem makes no difference; the process and the report."""
        plain = self.run(*words, dpmem=False, **keywords)
        done, report = self.recorded(*words, **keywords)
        assert without_addresses(done.stdout) == without_addresses(plain.stdout)
        assert without_addresses(done.stderr) == without_addresses(plain.stderr)
        assert done.returncode == plain.returncode
        assert report["exit_code"] == plain.returncode
        return plain, report

    def same_everywhere(self, source, *arguments, **keywords):
        """As `same`, with the source as a script, a module, text, a folder and a zip file."""
        self.write("script.py", source)
        self.write("package/__init__.py", "")
        self.write("package/__main__.py", source)
        with zipfile.ZipFile(self.folder / "archive.zip", "w") as archive:
            archive.write(self.folder / "script.py", "__main__.py")
        self.write("folder/__main__.py", source)
        for program in (
            ["script.py"],
            ["-m", "script"],
            ["-m", "package"],
            ["-c", source],
            ["folder"],
            ["archive.zip"],
        ):
            plain, _ = self.same(*program, *arguments, **keywords)
        return plain


@pytest.fixture
def python(version, tmp_path, package):
    return Interpreter(version, tmp_path, package)
