"""The end waits for host tasks of dpctl's, which may take the GIL, before it submits barriers, which holds it."""

from types import SimpleNamespace

import dpctl
import pytest

from dpmem import _runtime

RUNNING, COMPLETE = dpctl.event_status_type.running, dpctl.event_status_type.complete


class Event:
    """Runs while it is asked so many times."""

    def __init__(self, times):
        self.left = times

    @property
    def execution_status(self):
        self.left -= 1
        return RUNNING if self.left >= 0 else COMPLETE


@pytest.fixture
def barriers(monkeypatch):
    """`queue(task)`: a queue with a host task; the list of how often that had yet to be asked when a barrier came."""

    def queue(task):
        came = []
        barrier = SimpleNamespace(submit_barrier=lambda: came.append(task.left) or Event(0))
        manager = SimpleNamespace(submitted_events=[], host_task_events=[task])
        monkeypatch.setattr(_runtime, "managers", lambda: [(barrier, manager)])
        monkeypatch.setattr(_runtime, "inventory", lambda: ([], [barrier]))
        return came

    return queue


def test_host_tasks_end_before_a_barrier_is_submitted(barriers):
    came = barriers(Event(3))
    assert _runtime.drain(10)
    assert len(came) == 1
    assert came[0] < 0


def test_none_is_submitted_if_they_do_not_end(barriers):
    came = barriers(Event(10**9))
    assert not _runtime.drain(0.01)
    assert came == []
