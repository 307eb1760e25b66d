"""Structures and tables that the devices' library declares by hand, against the public headers where those are.

On Debian: `apt-get install level-zero-dev opencl-headers`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .fixtures import simulate

LEVEL_ZERO = Path("/usr/include/level_zero")
OPENCL = Path("/usr/include/CL/cl_icd.h")


def declared() -> list[list[str]]:
    printed = subprocess.run([simulate.build().with_name("layout")], capture_output=True, text=True, check=True)
    return [line.split() for line in printed.stdout.splitlines()]


def assertions(things: list[list[str]]) -> str:
    """A C program that can't be compiled if anything lies elsewhere."""
    lines = []
    for kind, name, *rest in things:
        if kind == "struct":
            condition = f"sizeof({name}) == {rest[0]}"
        elif kind == "field":
            condition = f"offsetof({name}, {rest[0]}) == {rest[1]}"
        else:
            assert kind == "place", kind
            condition = f"offsetof({name}, {rest[0]}) == {rest[1]} * sizeof(void *)"
        lines.append(f'_Static_assert({condition}, "{condition}");')
    return "\n".join(lines)


def check(headers: list[str], things: list[list[str]]) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    includes = "\n".join(
        ["#include <stdbool.h>", "#include <stddef.h>", "#define CL_TARGET_OPENCL_VERSION 300", *headers]
    )
    command = [compiler, "-fsyntax-only", "-x", "c", "-"]
    done = subprocess.run(
        command, input=f"{includes}\n{assertions(things)}\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_level_zero() -> None:
    if not (LEVEL_ZERO / "zes_ddi.h").exists():
        pytest.skip(f"the headers of Level Zero are not in `{LEVEL_ZERO}` (package level-zero-dev)")
    names = ["ze_api.h", "zes_api.h", "ze_ddi.h", "zes_ddi.h", "loader/ze_loader.h"]
    things = [thing for thing in declared() if thing[1] != "cl_icd_dispatch"]
    assert len(things) > 300
    check([f"#include <level_zero/{name}>" for name in names], things)


def test_opencl() -> None:
    if not OPENCL.exists():
        pytest.skip(f"the headers of OpenCL are not installed: no `{OPENCL}` (package opencl-headers)")
    things = [thing for thing in declared() if thing[1] == "cl_icd_dispatch"]
    assert len(things) > 25
    check(["#include <CL/cl_icd.h>"], things)


def test_a_wrong_place_is_found() -> None:
    with pytest.raises(AssertionError, match="offsetof"):
        check(["typedef struct { int a, b; } pair;"], [["field", "pair", "b", "0"]])
