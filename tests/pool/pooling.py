"""Programs of this folder, and how they are run."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "hook"))

from programs import run, run_plainly

__all__ = ["program", "run", "run_plainly"]

_SCRIPTS = Path(__file__).parent / "scripts"


def program(name, *arguments):
    """A script of this folder as source text, with its arguments."""
    return f"import sys\nsys.argv[1:] = {[str(each) for each in arguments]!r}\n" + (_SCRIPTS / name).read_text()
