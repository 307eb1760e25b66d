"""Run by each interpreter: stacks as the hook reads them are those that the interpreter itself tells."""

import asyncio
import contextvars
import functools
import sys
import threading

from dpmem import _native, _recording

CHECKED = []
_recording._configure(16)
assert _recording._no_stacks is None, _recording._no_stacks


def truth(depth):
    """The stack below `check`, innermost first, as the interpreter tells it."""
    frame, stack = sys._getframe(2), []
    while frame is not None and len(stack) < depth:
        code = frame.f_code
        stack.append((code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)))
        frame = frame.f_back
    return stack


def check(label, depth=128):
    read = [frame[:3] for frame in _native.frames_here(depth + 1)][1:]
    told = truth(depth)
    assert read == told, f"{label}: read {read}, expected {told}"
    assert read, label
    CHECKED.append(label)


def nested():
    def inner():
        check("nested function")

    inner()


class Holder:
    check("class body")

    def method(self):
        check("method")
        return self

    @property
    def prop(self):
        check("property")
        return 1

    def __add__(self, other):
        check("operator")
        return self

    def __del__(self):
        check("finalizer")


def generator():
    check("generator, first step")
    yield 1
    check("generator, second step")
    yield from (check("generator expression") for _ in range(1))


def recursion(n):
    if n:
        return recursion(n - 1)
    check("recursion, all of it")
    check("recursion, the innermost", depth=7)
    return None


async def coroutine():
    await asyncio.sleep(0)
    check("coroutine")
    return [check("asynchronous comprehension") async for _ in agenerator()]


async def agenerator():
    yield 1


def several_lines():
    return (
        check("the line of a call"),
        check(
            "the lines of a long call",
            depth=3,
        ),
    )


def with_exception():
    try:
        raise ValueError
    except ValueError:
        check("except block")
    finally:
        check("finally block")


def named():
    space = {"check": check}
    exec(
        compile("def f():\n\n  check('compiled')\nf()", "dossier-\u00e9t\u00e9/\u65e5\u672c/\U0001f600.py", "exec"),
        space,
    )
    exec("def \u00e9t\u00e9():\n  check('latin name')\n\u00e9t\u00e9()", space)
    exec("def \u65e5\u672c():\n  check('wide name')\n\u65e5\u672c()", space)
    exec("(lambda: check('lambda'))()", space)


def main():
    nested()
    Holder().method()
    _ = Holder().prop, Holder() + Holder()
    list(generator())
    recursion(100)
    asyncio.run(coroutine())
    several_lines()
    with_exception()
    named()
    sorted([2], key=lambda _: check("called back by sorted"))
    functools.reduce(lambda *_: check("called back by reduce"), (1, 2))
    list(map(lambda _: check("called back by map"), (1,)))
    [check("list comprehension") for _ in range(2)]
    contextvars.copy_context().run(nested)
    thread = threading.Thread(target=nested)
    thread.start()
    thread.join()
    for install in (sys.settrace, sys.setprofile):
        install(lambda *_: None)
        nested()
        install(None)
    _native.frames_configure(0, [])
    assert _native.frames_here(0) == []


main()
print(len(CHECKED))
