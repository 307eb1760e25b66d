"""Loading the extension, taking it out again, and IPython in a terminal."""

import subprocess
import sys

import pytest

from dpmem import _notebook

LOADS_NOTHING = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()

def state():
    return (
        {event: list(callbacks) for event, callbacks in shell.events.callbacks.items()},
        list(shell.ast_transformers), shell.displayhook, sys.displayhook, sys.excepthook, shell.custom_exceptions,
        sorted(shell.input_transformer_manager.line_transforms, key=repr),
    )

import dpmem
before, modules = state(), set(sys.modules)
shell.run_line_magic("load_ext", "dpmem")
assert state() == before
new = {name for name in set(sys.modules) - modules if name.startswith(("dpmem", "dpctl", "dpnp", "json", "html"))}
assert new == {"dpmem._notebook"}, new
status = dpmem._native.hook_status()
assert status["phase"] == "idle" and not status["recording"], status
assert shell.transform_cell("x = 1\\n%time y\\n") == "x = 1\\nget_ipython().run_line_magic('time', 'y')\\n"

shell.run_cell("%dpmem on\\n1", store_history=True)
assert dpmem.is_tracking() and state() != before
shell.run_line_magic("unload_ext", "dpmem")
assert not dpmem.is_tracking()
assert state()[0] == before[0]
assert shell.find_line_magic("dpmem") is None and shell.find_cell_magic("dpmem") is None
assert "dpmem" in shell.transform_cell("%%dpmem\\nx") and "find_line_magic" not in shell.transform_cell("%%dpmem\\nx")
dpmem.unload_ipython_extension(shell)

# A recording that the program itself began is not ended.
shell.run_line_magic("load_ext", "dpmem")
shell.run_cell("%dpmem on")
dpmem.stop()
dpmem.start()
shell.run_cell("%dpmem")
shell.run_line_magic("unload_ext", "dpmem")
assert dpmem.is_tracking()
print("done")
"""

IN_A_TERMINAL = """
import dpmem._icd
dpmem._icd.use_pip_runtime()
from IPython.core.interactiveshell import InteractiveShell
import __main__
shell = InteractiveShell.instance(user_module=__main__)
for text in ("%load_ext dpmem\\nimport dpnp", "%%dpmem\\nx = dpnp.ones(1 << 20, dtype='f4')\\nx;", "%dpmem"):
    shell.run_cell(text, store_history=True)
print(shell.input_transformer_manager.check_complete("%%dpmem\\nx = 1"))
print(shell.input_transformer_manager.check_complete("%%dpmem\\nx = 1\\n\\n"))
"""


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_loading_hooks_nothing_and_unloading_takes_all_back():
    assert run(LOADS_NOTHING).endswith("done\n")


def test_a_terminal_shows_text():
    out = run(IN_A_TERMINAL)
    assert "Left by this cell\n     4 MiB  x  cell In[2], line 2\n" in out, out
    assert "<div" not in out
    assert "By variable\n     4 MiB  x" in out
    assert out.endswith("('incomplete', 0)\n('complete', None)\n"), out


def test_only_what_asks_for_it_is_rewritten():
    for text in ("x = 1\n", "%%dpmem?\n", "%%dpmemory\nx\n", "%dpmem\n", "%%time\n%%dpmem\nx\n"):
        lines = text.splitlines(keepends=True)
        assert _notebook.rewritten(lines) == lines
    begin = "get_ipython().find_line_magic('dpmem')('cell')\n"
    assert _notebook.rewritten(["%%dpmem\n", "x\n"]) == [begin, "x\n"]
    assert _notebook.rewritten(["%%dpmem"]) == [begin]
    assert _notebook.rewritten([]) == []
    assert _notebook.rewritten(["%%dpmem  a 'b'\n", "x\n"])[0] == (
        "get_ipython().find_line_magic('dpmem')(\"cell a 'b'\")\n"
    )


@pytest.mark.parametrize(
    ("cell", "place"),
    [
        ("from __future__ import annotations; x = 1\nx = 2\n", "annotations"),
        ("# a comment\n'docstring'\nfrom __future__ import annotations  # why\nx\n", "annotations"),
        ("from __future__ import (\n    annotations,  # why\n    division,\n)\nx\n", ")"),
        ("from __future__ import annotations\nfrom __future__ import \\\n  division; y = 3\n", "division"),
        ("from __future__ import annotations\n%time y\n", "annotations"),
        ("'''\nfrom __future__ import annotations\n'''\nx = 1\n", ""),
        ("x = '''\nfrom __future__ import annotations\n'''\n", ""),
        ("!ls\nx = '''\nunfinished", ""),
    ],
)
def test_imports_from_the_future_stay_first_and_nothing_is_lost(cell, place):
    begin = "get_ipython().find_line_magic('dpmem')('cell')"
    expected = f"\n{cell.replace(place, f'{place}; {begin}', 1)}" if place else f"{begin}\n{cell}"
    lines = _notebook.rewritten(["%%dpmem\n", *cell.splitlines(keepends=True)])
    assert "".join(lines) == expected
    assert "".join(map(_notebook.as_typed, lines)) == f"\n{cell}"
    if place and "%" not in cell:
        compile(expected, "cell", "exec")
