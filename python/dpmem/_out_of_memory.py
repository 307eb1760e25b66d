"""What Python does in a shortage of device memory, and the error that explains itself.

`_on_shortage` is called by the hook, inside an allocation of the program's. What it raises is the program's: it came
out of a signal handler, or means to end the thread. The native side keeps such an exception, asks for nothing more but
"interrupted", and has it raised in the place of the error that the allocation ends with. Faults of our own end here.
Every wait is bounded, and lets the GIL go; the thread may end in any, when the interpreter goes.
"""

from __future__ import annotations

import _thread
import gc
import sys

from dpmem import _failure, _native, _recording, _runtime, _shortage_wait
from dpmem._failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from dpmem._failure import Call

#: What an error tells of its failure, beside the lists.
_FACTS = (
    "requested_bytes",
    "free_bytes",
    "free_source",
    "free_trust",
    "limit_bytes",
    "max_alloc_bytes",
    "device",
    "kind",
    "holders_age_s",
)

_callbacks: list[Callable[[Any], object]] = []
_error: type | None = None
#: Of each thread: `pending` is its newest failure until an exception has taken it, `last` its newest; `handlers` is the
#: code of the signal handlers that were in force when the stage began.
_own = _thread._local()
#: The newest of all.
_last: Failure | None = None


def install() -> None:
    """Have the hook call in a shortage."""
    _native.pool_on_shortage(_on_shortage)


def add_callback(callback: Callable[[Any], object]) -> Callable[[Any], object]:
    """Register a callback of the program, unless it is."""
    if callback not in _callbacks:
        _callbacks.append(callback)
    return callback


def remove_callback(callback: Callable[[Any], object]) -> None:
    """Call a callback of the program no more."""
    if callback in _callbacks:
        _callbacks.remove(callback)


def last_out_of_memory() -> Any:
    """Tell of the newest allocation that failed for lack of memory: an `OutOfDeviceMemory`; None if there was none.

    The newest of the calling thread, or of all threads if it had none. For handlers of the `RuntimeError` that dpnp's
    C++ raises itself for its temporaries, where that could not be replaced, because a debugger or coverage tool traces
    the thread. It may be raised in turn: `raise dpmem.last_out_of_memory() from error`.
    """
    newest = getattr(_own, "last", _last)
    return None if newest is None else _described(newest)


def text_for(error: BaseException | None) -> str | None:
    """The explanation that belongs under the traceback of an exception, if its own text doesn't hold it."""
    pending: Failure | None = getattr(_own, "pending", None)
    seen: set[int] = set()
    while error is not None and pending is not None and id(error) not in seen:
        seen.add(id(error))
        if _error is not None and isinstance(error, _error):
            return None
        if is_refusal(error) and pending.call in _calls_of(error):
            return pending.text
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def is_refusal(error: BaseException) -> bool:
    """Whether an exception is what dpctl, dpnp's C++ or pybind11 makes of an allocation that fails."""
    if type(error) is RuntimeError:
        text = str(error)
        scratch = text.startswith("Device allocation for ") and text.endswith(" failed")
        return scratch or text.startswith("Unable to allocate device")
    return type(error) is MemoryError or (_error is not None and isinstance(error, _error.__bases__[0]))


def _call_in(frame: FrameType | None) -> Call | None:
    """The call that a frame is in. Keeps nothing of the frame's alive, but its code."""
    return None if frame is None else (id(frame), frame.f_code, frame.f_lasti)


def _calls_of(error: BaseException) -> list[Call]:
    """The calls that an exception has come out of."""
    calls, trace = [], error.__traceback__
    while trace is not None:
        calls.append((id(trace.tb_frame), trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    return calls


def _pending_in(call: Call | None) -> Failure | None:
    """This thread's newest failure, if it is one of that call, and no exception has taken it.

    What was not taken, as where the thread is traced, is not to explain a later call that fails for something else.
    """
    pending: Failure | None = getattr(_own, "pending", None)
    return pending if pending is not None and pending.call == call else None


def _take(call: Call | None) -> Failure | None:
    """The failure that an exception out of that call is about. It is that of one only."""
    failure = _pending_in(call)
    if failure is not None:
        _own.pending = None
    return failure


def error_class() -> type:
    """`OutOfDeviceMemory`, made when it is first needed, because it derives from a class of dpctl's."""
    global _error
    if _error is None:
        import dpctl.memory

        _error = _make(dpctl.memory.USMAllocationError)
    return _error


def _make(base: type) -> type:
    bases = (base, *(cls for cls in (MemoryError, RuntimeError) if not issubclass(base, cls)))

    def __new__(cls: type, *arguments: object) -> Any:
        # dpctl's error of a request that failed, but not for lack of memory, word for word.
        is_other = arguments == ("USM allocation failed",) and _pending_in(_call_in(sys._getframe().f_back)) is None
        return base(*arguments) if is_other else base.__new__(cls, *arguments)

    def __init__(self: Any, *arguments: object) -> None:
        # dpctl raises with a text of its own; what this thread's newest failure is, it doesn't know. Whoever else makes
        # one means what they say.
        failure = _take(_call_in(sys._getframe().f_back)) if _is_dpctls(arguments) else None
        Exception.__init__(self, *((failure.text,) if failure is not None else arguments))
        _fill(self, failure)

    return type(
        "OutOfDeviceMemory",
        bases,
        {
            "__new__": __new__,
            "__init__": __init__,
            "__module__": "dpmem",
            "__doc__": "Device memory that was asked for is not to be had. The text says who holds what.",
        },
    )


def _is_dpctls(arguments: tuple[object, ...]) -> bool:
    return len(arguments) == 1 and "allocation failed" in str(arguments[0])


def _described(failure: Failure) -> Any:
    error = error_class()(failure.text)
    _fill(error, failure)
    return error


def _fill(error: Any, failure: Failure | None) -> None:
    for name in _FACTS:
        setattr(error, name, getattr(failure, name, None))
    error.holders = list(failure.holders) if failure is not None else []
    error.other_processes = list(failure.other_processes) if failure is not None else []


def _bind() -> None:
    """Have dpctl raise our class where it would raise its own, which ours is derived from."""
    module = sys.modules.get("dpctl.memory._memory")
    current = getattr(module, "USMAllocationError", None)
    if current is not None and current is not error_class():
        module.USMAllocationError = error_class()  # type: ignore[union-attr]


def _on_shortage(
    stage: str, requested: int, kind: str, index: int, by_limit: bool, code: int, raised: Exception | None
) -> bool:
    try:
        if raised is not None:  # by an earlier call of this function
            return _is_from_handler(raised) or _is_foreign(raised)
        # An explanation may be needed in the midst of another stage, in a handler even.
        before: set[CodeType | None] = getattr(_own, "handlers", set()) if stage == "explain" else set()
        _own.handlers = before | _handlers()
        if stage == "interrupt":
            return True  # the handlers of signals that have come have run on the way here
        if stage == "interrupted":
            return _make_way(sys._getframe().f_back)
        if stage == "begin":
            _shortage_wait.begin()
            return True
        if stage == "wait":
            return _shortage_wait.wait(requested, _device_at(index), by_limit=by_limit)
        if stage == "search":
            return _shortage_wait.search(requested, _device_at(index), by_limit=by_limit)
        if stage == "collect":
            return gc.collect() > 0
        if stage == "callbacks":
            return _ask_callbacks(requested, kind, _device_at(index), by_limit)
        return _explain(requested, kind, _device_at(index), by_limit, sys._getframe().f_back)
    except Exception as error:
        if _is_from_handler(error) or (stage != "callbacks" and _is_foreign(error)):
            raise
        # The program's request fails as it would have; that is all that can be done here.
        _native.process_write(2, f"dpmem: could not explain a failed allocation: {type(error).__name__}: {error}\n")
    return False


def _is_from_handler(error: Exception) -> bool:
    """Whether a signal handler has raised it that is in force or was when the stage began: some take themselves out."""
    handlers = _handlers() | getattr(_own, "handlers", set())
    return any(code in handlers for code in _codes_of(error))


def _handlers() -> set[CodeType | None]:
    import _signal  # type: ignore[import-not-found]

    codes = set()
    for number in range(1, _signal.NSIG):
        handler: Any = _signal.getsignal(number)
        handler = getattr(handler, "func", getattr(handler, "__func__", handler))  # of a partial, of a method
        codes.add(getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None))
    return codes


def _is_foreign(error: Exception) -> bool:
    """Whether it comes out of the program, of which only signal handlers can have run, or from another thread."""
    if any(code.co_filename[:1] == "/" and _recording.is_own(code.co_filename) for code in _codes_of(error)):
        return True
    return type(error).__module__.partition(".")[0] not in ("builtins", "dpmem", "dpctl", "dpnp")


def _codes_of(error: Exception) -> list[CodeType]:
    return [code for _, code, _ in _calls_of(error)]


def _make_way(caller: FrameType | None) -> bool:
    """Have the frame that is failing raise what is kept for it, whatever comes out of the call; whether it will."""
    from dpmem import _conversion

    # No explanation is due any more.
    _own.pending = None
    # Where the frame can't be traced, the interpreter raises it before the next step, which is our class's `__new__`.
    _bind()
    return caller is not None and _conversion.replace_next(caller, lambda raised: None)


def _device_at(index: int) -> str | None:
    _runtime.name_devices()
    return _native.device_name_at(index)


def _ask_callbacks(requested: int, kind: str, device: str | None, by_limit: bool) -> bool:
    again = False
    for callback in list(_callbacks):
        shortage = Failure(requested, kind, device, by_limit)
        try:
            again = callback(shortage) is True or again
        except Exception as error:
            if _is_from_handler(error):
                raise
            _native.error_ignored(error, callback)
    return again


def _explain(requested: int, kind: str, device: str | None, by_limit: bool, caller: FrameType | None) -> bool:
    global _last
    from dpmem import _conversion, _shortage_text

    failure = Failure(requested, kind, device, by_limit)
    _shortage_wait.begin()
    _shortage_text.complete(failure)
    failure.call = _call_in(caller)
    _last = _own.last = _own.pending = failure
    _failure.keep(failure, _shortage_text.held_most(failure))
    _bind()
    if caller is not None:
        # The last thing here, as from now on this thread is traced.
        _conversion.replace_next(caller, lambda raised: _as_ours(raised, failure.call))
    return True


def _as_ours(raised: BaseException, call: Call | None) -> Any:
    """`OutOfDeviceMemory` for what dpnp's C++ raises for the newest failure in a call; None for anything else."""
    if type(raised) is not RuntimeError or not is_refusal(raised):
        return None
    failure = _take(call)
    return None if failure is None else _described(failure)
