"""How long a shortage waits for queued work, and what it costs."""

import types

import pytest
from pooling import run, run_plainly

from dpmem import _failure, _shortage_text, _shortage_wait

#: A program that keeps at most three of its results, and for which a second is as long as an hour.
SLOW = """
    import dpnp, dpmem, time, types
    from dpmem import _shortage_wait
    n = 1500
    x = dpnp.ones((n, n))
    x[:9] @ x[:, :9]
    _shortage_wait.time = types.SimpleNamespace(
        monotonic=lambda: time.monotonic() * {faster}, sleep=time.sleep
    )
    {on}
    try:
        for _ in range(8):
            x @ x.T
    except dpmem.OutOfDeviceMemory as error:
        print(error)
    else:
        print("done")
"""


@pytest.mark.parametrize("on", ["dpmem.set_memory_limit", "dpmem.enable_pool"], ids=["limit", "pool"])
def test_queued_work_is_waited_for_however_long_it_takes(tmp_path, on):
    # A product takes some 0.2 s, which are two minutes then.
    ran = run_plainly(tmp_path, SLOW.format(faster=600, on=f"{on}(4 * n * n * 8 + 100_000)"))
    assert (ran.exit_code, ran.stdout) == (0, "done\n"), ran.stderr


class Work:
    """Queued work of which a piece ends every so many seconds of a clock of its own."""

    def __init__(self, pieces, seconds):
        self.left, self._pieces, self._seconds, self.now = pieces, pieces, seconds, 0.0

    def is_over(self):
        self.left = max(self._pieces - int(self.now / self._seconds), 0)
        return self.left == 0

    def clock(self):
        return types.SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds):
        self.now += 10.0


def test_what_gets_done_is_waited_for_and_what_never_ends_is_given_up_and_told(monkeypatch):
    slow = Work(pieces=50, seconds=1800)
    monkeypatch.setattr(_shortage_wait, "time", slow.clock())
    assert _shortage_wait._wait_for(slow, 1000, None, pieces=True) is True
    assert 1800 <= slow.now < 3600, "each end of a piece is worth a try"
    assert _shortage_wait._wait_for(slow, 1000, None, pieces=False) is False
    assert slow.now >= 50 * 1800
    assert _failure.Failure(1000, "host", None, by_limit=True).gave_up_after_s is None
    stuck = Work(pieces=1, seconds=1e9)
    monkeypatch.setattr(_shortage_wait, "time", stuck.clock())
    assert _shortage_wait._wait_for(stuck, 1000, None, pieces=True) is False
    assert 3600 < stuck.now < 3700
    # The stages after that don't wait for it again.
    assert not _shortage_wait.wait(1000, None, by_limit=False)
    assert not _shortage_wait.search(1000, None, by_limit=False)
    failure = _failure.Failure(1000, "host", None, by_limit=True)
    _shortage_wait.begin()
    _shortage_text.complete(failure)
    assert "queued work: waited for it, and nothing of it ended within" in failure.text
    # The next request that fails has not waited yet.
    assert _failure.Failure(1000, "host", None, by_limit=True).gave_up_after_s is None


def test_cached_blocks_don_t_wait_for_the_work_of_another_queue(tmp_path):
    source = """
        import time, dpctl, dpctl.memory as m, dpmem
        size, busy, idle = 128 << 20, dpctl.SyclQueue(), dpctl.SyclQueue()
        here, there = m.MemoryUSMDevice(size, queue=busy), m.MemoryUSMDevice(size, queue=busy)
        here.memset(1), there.memset(1)
        dpmem.enable_pool(2 * size + (8 << 20))
        cached = m.MemoryUSMDevice(6 << 20, queue=idle)
        def copies(count):
            events = []
            for _ in range(count):
                events = [busy.memcpy_async(there, here, size, events)]
            return events
        begun = time.perf_counter()
        copies(10)[0].wait()
        # About six seconds of work, wherever this runs: cached blocks are spared for one.
        events = copies(int(60 / (time.perf_counter() - begun)) + 1)
        # Whether it is at rest can't be known before all that work has ended.
        del cached
        kept = m.MemoryUSMDevice(7 << 20, queue=idle)
        print(events[0].execution_status)
        events[0].wait()
    """
    ran = run_plainly(tmp_path, source)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout in ("event_status_type.running\n", "event_status_type.submitted\n")


def test_only_the_work_of_the_device_that_is_full_is_waited_for(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        from dpmem import _runtime
        block = m.MemoryUSMDevice(100)
        dpmem.set_memory_limit("1MiB")
        asked = []
        real = _runtime._queued_events
        _runtime._queued_events = lambda device, search: asked.append((device, search)) or real(device, search)
        try:
            m.MemoryUSMDevice(1 << 20)
        except dpmem.OutOfDeviceMemory as error:
            print(error.device, sorted(set(asked)))
    """
    ran = run_plainly(tmp_path, source)
    name = ran.stdout.split(" ", 1)[0]
    assert ran.stdout == f"{name} [('{name}', False), ('{name}', True)]\n", ran.stderr


def test_a_rescue_looks_at_no_object_of_the_program(tmp_path):
    source = """
        import dpnp
        from dpmem import _runtime
        x = dpnp.ones((700, 700))
        x[:9] @ x[:, :9]
        real, searches = _runtime.inventory, []
        _runtime.inventory = lambda *arguments: searches.append(1) or real(*arguments)
        for _ in range(20):
            x @ x.T
        print(len(searches))
        _runtime.inventory = real
    """
    ran = run(tmp_path, source, "--limit", str(4 * 700 * 700 * 8 + 100_000))
    assert (ran.exit_code, ran.stdout) == (0, "0\n"), ran.stderr
    assert ran.report["pool"]["rescued_by"]["wait"] > 0


def test_work_that_dpctl_does_not_order_is_found_and_waited_for(tmp_path):
    source = """
        import dpctl, dpctl.memory as m, dpmem
        from dpmem import _runtime
        queue = dpctl.SyclQueue()
        big, other = m.MemoryUSMDevice(64 << 20, queue=queue), m.MemoryUSMDevice(64 << 20, queue=queue)
        event = queue.memcpy_async(big, other, 64 << 20)
        dpmem.set_memory_limit("1MiB")
        waited = []
        class Waiting(_runtime.Waiting):
            def __init__(self, device=None, *, search=True):
                super().__init__(device, search=search)
                waited.append((search, self.begun))
        _runtime.Waiting = Waiting
        try:
            m.MemoryUSMDevice(1000, queue=queue)
        except dpmem.OutOfDeviceMemory:
            print([search for search, begun in waited])
    """
    ran = run_plainly(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, "[False, True]\n"), ran.stderr


def test_a_line_that_fails_again_and_again_is_not_searched_for_each_time(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        from dpmem import _holders, _runtime, _shortage_text, _shortage_wait
        first = m.MemoryUSMDevice(100)
        dpmem.set_memory_limit("1MiB")
        searched = []
        def counted(module, name):
            real = getattr(module, name)
            def call(*arguments, **named):
                searched.append(name)
                return real(*arguments, **named)
            setattr(module, name, call)
        counted(_holders, "find"); counted(_runtime, "inventory")
        kept = m.MemoryUSMDevice(900_000)
        def fail():
            try:
                m.MemoryUSMDevice(900_000)
            except dpmem.OutOfDeviceMemory as error:
                print(sorted(searched), error.holders[0]["bytes"], error.holders[0]["holders"])
                print("as of" in str(error), "referenced" in str(error))
                searched.clear()
        _shortage_text._SEARCH_SHARE = _shortage_wait._SEARCH_SHARE = 1e-6
        fail()
        fail()
        del kept
        other = m.MemoryUSMDevice(950_000)
        fail()
    """
    ran = run_plainly(tmp_path, source)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "['find', 'inventory'] 900000 ['__main__.kept']",
        "False True",
        "[] 900000 ['__main__.kept']",
        "True False",
        "[] 950000 []",
        "True False",
    ]
