"""Decides, without loading anything, whether to point the OpenCL loader at pip's CPU runtime.

``pip install dpnp`` brings that runtime, but the file that should register it names the folder of the build
machine, so no device is found. ``OCL_ICD_FILENAMES`` mends it when set before the first SYCL use. It is set
only where otherwise there would be no device at all: no registered OpenCL driver that SYCL accepts, and no
GPU that another backend could reach.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

RUNTIME = "libintelocl.so"
_SETTINGS = ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS")
_ADAPTER_SETTINGS = ("UR_ADAPTERS_FORCE_LOAD", "UR_ADAPTERS_SEARCH_PATH", "SYCL_UR_ADAPTERS_FORCE_LOAD")
_INTEL = "0x8086"


def use_pip_runtime() -> str | None:
    """Set ``OCL_ICD_FILENAMES`` in this process if it takes that to have a device; the result says so."""
    library = choose_runtime(os.environ, prefixes=prefixes())
    if library is None:
        return None
    os.environ["OCL_ICD_FILENAMES"] = library
    return f"no OpenCL driver is registered; using pip's CPU runtime (OCL_ICD_FILENAMES={library})"


def choose_runtime(environ: Mapping[str, str], *, prefixes: Sequence[str], root: str = "/") -> str | None:
    """Name pip's CPU runtime if no device would be found without it.

    ``prefixes`` are the folders whose ``lib`` and ``etc`` a Python installation uses, ``root`` is where the
    system's own are.
    """
    if any(environ.get(name) for name in (*_SETTINGS, *_ADAPTER_SETTINGS)):
        return None
    libraries = (os.path.join(prefix, "lib", RUNTIME) for prefix in prefixes)
    runtime = next(filter(os.path.isfile, libraries), None)
    if runtime is None:
        return None
    search = _Search(environ, prefixes, root)
    if search.has_opencl_driver() or search.may_have_gpu():
        return None
    return runtime


class _Search:
    """Looks for drivers in the places where the loaders would."""

    def __init__(self, environ: Mapping[str, str], prefixes: Sequence[str], root: str) -> None:
        self._root = root
        self._prefixes = prefixes
        paths = environ.get("LD_LIBRARY_PATH", "").split(":")
        system = (
            "lib",
            "lib64",
            "usr/lib",
            "usr/lib64",
            "usr/local/lib",
            "usr/lib/x86_64-linux-gnu",
            "usr/lib/wsl/lib",
        )
        self._library_folders = [path for path in paths if path]
        self._library_folders += [os.path.join(prefix, "lib") for prefix in prefixes]
        self._library_folders += [os.path.join(root, folder) for folder in system]
        self._cache: bytes | None = None

    def has_opencl_driver(self) -> bool:
        """Whether a registered driver exists and is one that SYCL does not refuse."""
        for base in (self._root, *self._prefixes):
            folder = os.path.join(base, "etc/OpenCL/vendors")
            for name in _names(folder):
                if name.endswith(".icd") and any(map(self._is_driver, _lines(os.path.join(folder, name)))):
                    return True
        return False

    def may_have_gpu(self) -> bool:
        """Whether Level Zero, CUDA or HIP could reach a device."""
        level_zero = self._is_library("libze_loader.so.1") or self._is_library("libze_loader.so")
        return (
            (level_zero and (self._has_intel_node() or self._exists("dev/dxg")))
            or (self._exists("dev/nvidiactl") and self._has_adapter("libur_adapter_cuda.so"))
            or (self._exists("dev/kfd") and self._has_adapter("libur_adapter_hip.so"))
        )

    def _is_driver(self, library: str) -> bool:
        # SYCL passes over NVIDIA's OpenCL platform.
        return "nvidia" not in os.path.basename(library) and self._is_library(library)

    def _is_library(self, name: str) -> bool:
        if os.path.isabs(name):
            return os.path.exists(name)
        if any(os.path.exists(os.path.join(folder, name)) for folder in self._library_folders):
            return True
        if self._cache is None:
            self._cache = _content(os.path.join(self._root, "etc/ld.so.cache"))
        return b"/%s\0" % os.fsencode(name) in self._cache

    def _has_adapter(self, name: str) -> bool:
        folders = [os.path.join(prefix, "lib") for prefix in self._prefixes]
        return any(found.startswith(name) for folder in folders for found in _names(folder))

    def _has_intel_node(self) -> bool:
        for node in _names(os.path.join(self._root, "dev/dri")):
            if node.startswith("renderD"):
                vendor = _lines(os.path.join(self._root, "sys/class/drm", node, "device/vendor"))
                if not vendor or vendor[0] == _INTEL:
                    return True
        return False

    def _exists(self, path: str) -> bool:
        return os.path.exists(os.path.join(self._root, path))


def prefixes() -> list[str]:
    """Where the program's dpctl, and then this Python, have their libraries; empty without dpctl."""
    package = package_folder("dpctl")
    if package is None:
        return []
    packages = os.path.dirname(package)
    user = getattr(sys.modules.get("site"), "USER_BASE", None)
    candidates = [
        os.path.dirname(os.path.dirname(os.path.dirname(packages))),
        packages,
        sys.prefix,
        sys.base_prefix,
        user,
    ]
    return list(_distinct(candidate for candidate in candidates if candidate))


def package_folder(name: str) -> str | None:
    """Where a package lies, without importing it."""
    for finder in list(sys.meta_path):
        try:
            spec = finder.find_spec(name, None)
        except Exception:
            continue
        if spec is not None:
            locations = list(spec.submodule_search_locations or ())
            return locations[0] if locations else None
    return None


def _distinct(items: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(items)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _lines(path: str) -> list[str]:
    return [line.strip() for line in os.fsdecode(_content(path)).splitlines() if line.strip()]


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
