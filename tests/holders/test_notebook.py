"""A real IPython shell."""

import subprocess
import sys

PROGRAM = """
import dpmem._icd
dpmem._icd.use_pip_runtime()
from IPython.core.interactiveshell import InteractiveShell
import sys, __main__
shell = InteractiveShell.instance(user_module=__main__)
def cell(text):
    shell.run_cell(text, store_history=True)
cell("import dpnp, dpmem")
cell("dpnp.ones(1000)")
cell("found = {(h.kind, h.path) for h in dpmem.holders(_)}; found")
print(shell.user_ns["found"])
cell("where = []")
cell('''def fails():
    lost = dpnp.ones(2000)
    where.append(lost.get_array().usm_data._pointer)
    raise ValueError
''')
cell("fails()")
from dpmem import _holders
print(_holders.find([(shell.user_ns["where"][0], 16000)], pending=set()).rows()[0][3])
"""


def test_outputs_and_tracebacks_are_named():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "('notebook', 'Out[2]')" in done.stdout, done.stdout + done.stderr
    assert "('notebook', '_')" in done.stdout
    assert "('notebook', '_2')" in done.stdout
    assert "fails(): lost" in done.stdout
