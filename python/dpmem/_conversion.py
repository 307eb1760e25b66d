"""Has an exception that C or C++ is about to raise reach Python as another one.

dpnp's C++ throws for memory that it did not get, and pybind11 makes a `RuntimeError` of it. That it is under way is
known before: the hook asks for an explanation inside the failing allocation. From then until the calling frame goes on,
that one frame is traced. The first thing that happens in it ends the tracing: the exception, which is replaced, or
anything else, and then nothing is. Where a debugger or a coverage tool traces the thread, nothing is touched.
"""

from __future__ import annotations

import functools
import sys

from dpmem import _native

#: Whether the interpreter enters the frame in the traceback once more when its trace function raises.
_ENTERS_AGAIN = sys.version_info < (3, 11)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    #: Answers what is to be raised instead; None for the exception as it is.
    Replace = Callable[[BaseException], BaseException | None]


def replace_next(frame: FrameType, replace: Replace) -> bool:
    """Have `replace` decide about the next exception that reaches `frame` out of the call it is in.

    For the thread that runs `frame` and calls this out of that call. False if the thread is being traced already.
    """
    if sys.gettrace() is not None or frame.f_trace is not None:
        return False
    # Called through the native module, which raises without a frame of its own in the traceback.
    frame.f_trace = functools.partial(_native.raised_instead, functools.partial(_decide, replace))
    sys.settrace(_no_other_frame)
    return True


def _no_other_frame(frame: FrameType, event: str, argument: object) -> None:
    return None


def _decide(replace: Replace, frame: FrameType, event: str, argument: Any) -> BaseException | None:
    sys.settrace(None)
    frame.f_trace = None
    if event != "exception":
        return None
    old, trace = argument[1:]
    new = replace(old)
    if new is None or new is old:
        return None
    # Up to Python 3.11 the exception doesn't have it yet.
    new.__cause__ = old.with_traceback(trace)
    return new.with_traceback(trace.tb_next if _ENTERS_AGAIN and trace is not None else trace)
