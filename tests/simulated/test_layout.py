"""Structures, tables and numbers that the devices' library declares by hand, against the public headers.

On Debian, `apt-get install libze-dev opencl-c-headers` brings them. Older ones lack some of it; what they have must
agree.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .fixtures import simulate

LEVEL_ZERO = Path("/usr/include/level_zero")
OPENCL = Path("/usr/include/CL/cl_icd.h")
#: The first version of Level Zero's headers that has everything.
WHOLE = (1, 11)


def declared() -> list[list[str]]:
    printed = subprocess.run([simulate.build().with_name("layout")], capture_output=True, text=True, check=True)
    return [line.split() for line in printed.stdout.splitlines()]


def mention(thing: list[str]) -> str:
    """A number that only a compiler can tell that knows the thing."""
    kind, name, *rest = thing
    if kind == "struct":
        return f"sizeof({name})"
    return name if kind == "value" else f"offsetof({name}, {rest[0]})"


def expected(thing: list[str]) -> str:
    kind, _, *rest = thing
    return f"{rest[1]} * sizeof(void *)" if kind == "place" else rest[-1]


def refused(headers: list[str], lines: list[str]) -> set[int]:
    """Numbers of those lines of C that a compiler refuses."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    before = ["#include <stdbool.h>", "#include <stddef.h>", "#define CL_TARGET_OPENCL_VERSION 300", *headers]
    command = [compiler, "-fsyntax-only", "-x", "c", "-"]
    text = "\n".join([*before, '#line 1 "assertions"', *lines, ""])
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    found = {int(number) - 1 for number in re.findall(r"^assertions:(\d+):\d+: error", done.stderr, re.MULTILINE)}
    assert bool(found) == bool(done.returncode), done.stderr
    return found


def check(headers: list[str], things: list[list[str]]) -> list[list[str]]:
    """Nothing lies elsewhere in the headers, or is another number; returns what they lack."""
    asserted = [f'_Static_assert({mention(it)} == {expected(it)}, "");' for it in things]
    # A mention that is not understood is no error of ours, so those are told apart by lines that only mention.
    mentioned = [f"enum {{ mention_{number} = {mention(it)} }};" for number, it in enumerate(things)]
    wrong = refused(headers, asserted)
    absent = refused(headers, mentioned) if wrong else set()
    assert [things[number] for number in sorted(wrong - absent)] == []
    return [things[number] for number in sorted(absent)]


def test_level_zero() -> None:
    if not (LEVEL_ZERO / "zes_ddi.h").exists():
        pytest.skip(f"the headers of Level Zero are not in `{LEVEL_ZERO}` (package libze-dev)")
    names = ["ze_api.h", "zes_api.h", "ze_ddi.h", "zes_ddi.h", "loader/ze_loader.h"]
    things = [thing for thing in declared() if thing[1] != "cl_icd_dispatch"]
    assert len(things) > 390
    absent = check([f"#include <level_zero/{name}>" for name in names], things)
    text = (LEVEL_ZERO / "ze_api.h").read_text()
    version = re.search(r"ZE_API_VERSION_CURRENT = ZE_MAKE_VERSION\( (\d+), (\d+) \)", text)
    assert version is not None
    if tuple(map(int, version.groups())) >= WHOLE:
        assert absent == []
    assert len(absent) < len(things) // 10


def test_opencl() -> None:
    if not OPENCL.exists():
        pytest.skip(f"the headers of OpenCL are not installed: no `{OPENCL}` (package opencl-c-headers)")
    things = [thing for thing in declared() if thing[1] == "cl_icd_dispatch"]
    assert len(things) > 25
    assert check(["#include <CL/cl_icd.h>"], things) == []


PAIR = ["typedef struct { int a, b; } pair;", "enum { SEVEN = 7 };"]


@pytest.mark.parametrize(
    "thing",
    [["struct", "pair", "9"], ["field", "pair", "b", "0"], ["place", "pair", "b", "1"], ["value", "SEVEN", "8"]],
)
def test_what_is_wrong_is_found(thing: list[str]) -> None:
    with pytest.raises(AssertionError, match=thing[1]):
        check(PAIR, [["struct", "pair", "8"], thing])


def test_what_headers_lack_is_told_apart() -> None:
    right = [["struct", "pair", "8"], ["field", "pair", "b", "4"], ["value", "SEVEN", "7"]]
    lacking = [["field", "pair", "c", "8"], ["struct", "triple", "12"], ["value", "NINE", "9"]]
    assert check(PAIR, right + lacking) == lacking
