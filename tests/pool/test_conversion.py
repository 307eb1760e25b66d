"""An exception out of C becomes another one on its way into Python; nothing else changes."""

import sys
import traceback

import pytest

from dpmem._conversion import replace_next


class Ours(RuntimeError):
    """What is raised instead."""


def fail_in_c(replace, *, fail=True):
    """Has C call Python, which orders the replacement of what C is about to raise."""
    numbers = {1: 1, 2: 2}
    frame = sys._getframe()
    ordered = []

    def order(key):
        if not ordered:
            ordered.append(replace_next(frame, replace))
            if fail:
                numbers[3] = 3
        return key

    list(map(order, numbers))
    return ordered


def test_what_c_raises_arrives_as_ours():
    seen = []
    with pytest.raises(Ours, match="instead") as caught:
        fail_in_c(lambda raised: seen.append(raised) or Ours("instead"))
    assert [type(each) for each in seen] == [RuntimeError]
    assert caught.value.__cause__ is seen[0]
    names = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert names == [sys._getframe().f_code.co_name, "fail_in_c"]
    assert sys.gettrace() is None


def test_what_is_none_of_ours_stays():
    with pytest.raises(RuntimeError, match="changed size"):
        fail_in_c(lambda raised: None)
    assert sys.gettrace() is None


def test_without_an_exception_nothing_happens_and_nothing_stays_behind():
    assert fail_in_c(pytest.fail, fail=False) == [True]
    assert sys.gettrace() is None
    with pytest.raises(ZeroDivisionError):
        1 // 0


def test_a_thread_that_is_traced_is_left_alone():
    def tracer(*event):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with pytest.raises(RuntimeError, match="changed size"):
            fail_in_c(pytest.fail)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
