"""Programs of this folder, and how they are run."""

import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "hook"))

from programs import run, run_plainly

__all__ = ["again_if_it_hangs", "program", "run", "run_plainly"]

_SCRIPTS = Path(__file__).parent / "scripts"


def program(name, *arguments):
    """A script of this folder as source text, with its arguments."""
    return f"import sys\nsys.argv[1:] = {[str(each) for each in arguments]!r}\n" + (_SCRIPTS / name).read_text()


def again_if_it_hangs(attempt, tries=3):
    """What `attempt()` answers. Programs that keep several threads of SYCL's busy hang now and then without dpmem, too
    ("Hangs" in docs/field-notes.md), so one that takes too long is run again."""
    for number in range(1, tries + 1):
        try:
            return attempt()
        except subprocess.TimeoutExpired:
            if number == tries:
                raise
    raise ValueError(f"expected at least one try, got {tries}")
