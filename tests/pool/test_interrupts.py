"""What signal handlers, `sys.exit` and other threads raise in the midst of a shortage reaches the program, once."""

import pytest
from pooling import run, run_plainly

#: What raises, and as what it has to arrive. `strike()` has the signal come.
SIGNALS = {
    "ctrl-c": ("signal.SIGINT", "signal.default_int_handler", "KeyboardInterrupt"),
    "timeout": ("signal.SIGALRM", "late", "TimeoutError"),
    "exit": ("signal.SIGTERM", "leave", "SystemExit"),
    "budget": ("signal.SIGUSR1", "over", "Budget"),
}
#: Where the signal comes; nowhere.
STAGES = {
    "wait": "wrap(_runtime.Waiting, 'is_over')",
    "callback": "dpmem.on_out_of_memory(lambda shortage: (strike(), True)[1])",
    "explain": "wrap(_shortage_text, 'complete')",
    "traced": "wrap(_conversion, 'replace_next', before=False)",
    "never": "",
}
#: What fails: an allocation of dpctl's, and a temporary of dpnp's C++, for which the result still fits.
REQUESTS = {"dpctl": "m.MemoryUSMDevice(1 << 20)", "dpnp": "dpnp.sum(x)"}

PROGRAM = """
    import signal, sys, time, dpnp, dpctl.memory as m, dpmem
    from dpmem import _conversion, _runtime, _shortage_text
    x = dpnp.ones(1 << 20, dtype="f8")
    dpnp.sum(dpnp.ones(4))
    dpmem.start()
    dpmem.set_memory_limit(dpmem.memory_reserved() + 100)

    def late(number, frame):
        signal.signal(number, signal.SIG_DFL)
        raise TimeoutError("time is up")

    def leave(number, frame):
        sys.exit(7)

    class Budget(MemoryError):
        pass

    def over(number, frame):
        raise Budget("spent")

    struck = 0
    def strike():
        global struck
        struck += 1
        signal.raise_signal({signal})

    def wrap(where, name, before=True):
        real = getattr(where, name)
        def wrapped(*arguments):
            if before:
                strike()
            answer = real(*arguments)
            if not before and not struck:
                strike()
            return answer
        setattr(where, name, wrapped)

    dpmem.on_out_of_memory(lambda shortage: False)
    {stage}
    signal.signal({signal}, {handler})
    tracer = (lambda *event: None) if {traced} else None
    sys.settrace(tracer)
    raised = []
    try:
        try:
            {request}
        except BaseException as error:
            raised.append(error)
        for _ in range(10_000):
            time.sleep(0)
    except BaseException as error:
        raised.append(error)
    sys.settrace(None)
    print([type(error).__name__ for error in raised], struck)
    if not struck:
        print(raised[0].__cause__.__class__.__name__)
    try:
        m.MemoryUSMDevice(20, alignment=3)
    except Exception as error:
        print(type(error).__name__)
"""
#: What dpctl raises for what fails in itself, after all that.
AFTER = "USMAllocationError\n"


def interrupted(tmp_path, *, how, stage, request, traced=False):
    number, handler, kind = SIGNALS[how]
    source = PROGRAM.format(
        signal=number, handler=handler, stage=STAGES[stage], request=REQUESTS[request], traced=traced
    )
    return run_plainly(tmp_path, source), kind


@pytest.mark.parametrize(
    ("how", "stage", "request_"),
    [
        ("ctrl-c", "wait", "dpctl"),
        ("ctrl-c", "explain", "dpnp"),
        ("timeout", "wait", "dpnp"),
        ("timeout", "explain", "dpctl"),
        ("exit", "callback", "dpnp"),
        ("timeout", "callback", "dpctl"),
        ("budget", "wait", "dpctl"),
        ("budget", "callback", "dpnp"),
        ("ctrl-c", "traced", "dpctl"),
        ("ctrl-c", "traced", "dpnp"),
    ],
)
def test_what_a_signal_handler_raises_comes_in_the_place_of_the_error(tmp_path, how, stage, request_):
    ran, kind = interrupted(tmp_path, how=how, stage=stage, request=request_)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, f"['{kind}'] 1\n{AFTER}", "")


@pytest.mark.parametrize(("request_", "cause"), [("dpctl", "NoneType"), ("dpnp", "RuntimeError")])
def test_these_requests_fail_where_they_are_meant_to(tmp_path, request_, cause):
    ran, _ = interrupted(tmp_path, how="ctrl-c", stage="never", request=request_)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, f"['OutOfDeviceMemory'] 0\n{cause}\n{AFTER}", "")


@pytest.mark.parametrize("request_", list(REQUESTS))
def test_it_comes_where_the_thread_is_traced(tmp_path, request_):
    ran, kind = interrupted(tmp_path, how="ctrl-c", stage="wait", request=request_, traced=True)
    first, after = ran.stdout.split("\n", 1)
    kinds, struck = first.rsplit(" ", 1)
    assert (ran.exit_code, int(struck), after, ran.stderr) == (0, 1, AFTER, "")
    assert kinds.count(kind) == 1, "the error may come first there, but the interrupt comes"


def test_what_failed_unseen_does_not_explain_a_later_failure(tmp_path):
    ran, _ = interrupted(tmp_path, how="ctrl-c", stage="never", request="dpnp", traced=True)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, f"['RuntimeError'] 0\nNoneType\n{AFTER}", "")


def test_what_failed_unseen_is_not_told_under_another_traceback(tmp_path):
    source = """
        import sys, dpnp, dpctl.memory as m, dpmem
        x = dpnp.ones(1 << 20, dtype="f8")
        dpnp.sum(dpnp.ones(4))
        dpmem.set_memory_limit(dpmem.memory_reserved() + 100)
        sys.settrace(lambda *event: None)
        try:
            dpnp.sum(x)
        except RuntimeError as error:
            print(type(error).__name__)
        sys.settrace(None)
        m.MemoryUSMDevice(20, alignment=3)
    """
    ran = run(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (1, "RuntimeError\n"), ran.stderr
    assert "USMAllocationError: USM allocation failed\n" in ran.stderr
    assert "asked for" not in ran.stderr


def test_of_two_interrupts_the_newer_comes_and_tells_of_the_other(tmp_path):
    source = """
        import signal, sys, dpctl.memory as m, dpmem
        from dpmem import _out_of_memory, _runtime
        kept = m.MemoryUSMDevice(1 << 19)
        dpmem.set_memory_limit("1MiB")
        def leave(number, frame):
            sys.exit(7)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, leave)
        struck = []
        def strike_once(where, name, number):
            real = getattr(where, name)
            def wrapped(*arguments):
                if number not in struck:
                    struck.append(number)
                    signal.raise_signal(number)
                return real(*arguments)
            setattr(where, name, wrapped)
        strike_once(_runtime.Waiting, "is_over", signal.SIGINT)
        strike_once(_out_of_memory, "_bind", signal.SIGTERM)
        try:
            m.MemoryUSMDevice(1 << 20)
        except BaseException as error:
            print(type(error).__name__, type(error.__context__).__name__)
        print(len(struck), sys.gettrace())
    """
    ran = run_plainly(tmp_path, source)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "SystemExit KeyboardInterrupt\n2 None\n", "")


def test_an_interrupt_reaches_a_thread_that_waits_for_the_devices_work(tmp_path):
    source = """
        import signal, threading, dpctl, dpctl.memory as m, dpmem
        from dpmem import _out_of_memory
        size, queue = 128 << 20, dpctl.SyclQueue()
        here, there = m.MemoryUSMDevice(size, queue=queue), m.MemoryUSMDevice(size, queue=queue)
        here.memset(1), there.memset(1)
        dpmem.enable_pool(2 * size + (2 << 20))
        events = []
        for _ in range(200):
            events = [queue.memcpy_async(there, here, size, events)]
        real = _out_of_memory._handlers
        def entered():
            global timer
            if timer is None:
                print("waiting")
                timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
                timer.start()
            return real()
        timer, _out_of_memory._handlers = None, entered
        try:
            kept = [m.MemoryUSMDevice(900_000, queue=queue) for _ in range(3)]
        except KeyboardInterrupt:
            print(events[0].execution_status)
            events[0].wait()
    """
    ran = run_plainly(tmp_path, source)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout in [f"waiting\nevent_status_type.{status}\n" for status in ("running", "submitted")]


def test_a_fault_of_ours_is_told_and_the_request_fails_as_ever(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        from dpmem import _runtime
        kept = m.MemoryUSMDevice(1 << 19)
        dpmem.set_memory_limit("1MiB")
        _runtime.Waiting.left = property(len)  # it has no length
        try:
            m.MemoryUSMDevice(1 << 20)
        except dpmem.OutOfDeviceMemory as error:
            print(error.requested_bytes)
    """
    ran = run_plainly(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (0, f"{1 << 20}\n"), ran.stderr
    told = "dpmem: could not explain a failed allocation: TypeError: object of type 'Waiting' has no len()\n"
    assert ran.stderr == told


def test_a_callback_may_end_the_program_and_others_are_called_after_one_that_fails(tmp_path):
    source = """
        import sys, dpctl.memory as m, dpmem
        kept = m.MemoryUSMDevice(1000)
        dpmem.set_memory_limit("1MiB")
        called = []
        @dpmem.on_out_of_memory
        def removed(shortage):
            called.append("removed")
        @dpmem.on_out_of_memory
        def broken(shortage):
            called.append("broken")
            raise ValueError("no good")
        @dpmem.on_out_of_memory
        def last(shortage):
            called.append("last")
            if len(called) > 3:
                sys.exit(5)
        assert dpmem.on_out_of_memory(last) is last
        dpmem.remove_out_of_memory_callback(removed)
        dpmem.remove_out_of_memory_callback(print)
        try:
            m.MemoryUSMDevice(2 << 20)
        except dpmem.OutOfDeviceMemory:
            print(called, flush=True)
        m.MemoryUSMDevice(2 << 20)
    """
    ran = run_plainly(tmp_path, source)
    assert (ran.exit_code, ran.stdout) == (5, "['broken', 'last']\n"), ran.stderr
    assert ran.stderr.count("Exception ignored in: <function broken at") == 2
    assert ran.stderr.count("ValueError: no good") == 2


LEAVING = """
    import threading, time, dpctl.memory as m, dpmem
    from dpmem import _runtime
    kept = m.MemoryUSMDevice(1000)
    dpmem.enable_pool("1MiB")
    inside = threading.Event()
    {trap}
    def work():
        m.MemoryUSMDevice(2000)
        kept = m.MemoryUSMDevice(900_000)
        m.MemoryUSMDevice(900_000)
    threading.Thread(target=work, daemon=True).start()
    inside.wait()
    print("leaving")
"""
CALLBACK = """
    @dpmem.on_out_of_memory
    def forever(shortage):
        inside.set()
        while True:
            time.sleep(0.0001)
"""
WAIT = """
    def forever(self):
        inside.set()
        return False
    _runtime.Waiting.is_over = forever
"""


FAILING = """
    import sys
    def forever(unraisable):
        inside.set()
        while True:
            time.sleep(0.0001)
    sys.unraisablehook = forever
    @dpmem.on_out_of_memory
    def failing(shortage):
        raise ValueError("no good")
"""


@pytest.mark.parametrize("trap", [CALLBACK, WAIT, FAILING], ids=["callback", "wait", "failing callback"])
def test_the_program_may_leave_while_a_daemon_thread_has_run_out(tmp_path, trap):
    ran = run_plainly(tmp_path, LEAVING.format(trap=trap))
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "leaving\n", "")


def test_the_program_may_leave_while_daemon_threads_fail(tmp_path):
    source = """
        import threading, time, dpctl.memory as m, dpmem
        kept = m.MemoryUSMDevice(1000)
        dpmem.enable_pool("64MiB")
        failed = threading.Semaphore(0)
        def work():
            while True:
                try:
                    m.MemoryUSMDevice(1 << 45)
                except MemoryError:
                    failed.release()
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        for _ in range(6):
            failed.acquire()
        print("leaving")
    """
    ran = run_plainly(tmp_path, source)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "leaving\n", "")


@pytest.mark.parametrize("traced", [False, True])
def test_what_another_thread_sends_into_a_thread_comes_there(tmp_path, traced):
    source = f"""
        import ctypes, sys, threading, dpctl.memory as m, dpmem
        from dpmem import _runtime
        class Stop(BaseException):
            pass
        first = m.MemoryUSMDevice(100)
        dpmem.set_memory_limit("1MiB")
        real = _runtime.Waiting.is_over
        def wrapped(self):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(Stop))
            return real(self)
        _runtime.Waiting.is_over = wrapped
        def work():
            raised = []
            if {traced}:
                sys.settrace(lambda *event: None)
            try:
                kept = m.MemoryUSMDevice(900_000)
                m.MemoryUSMDevice(900_000)
            except BaseException as error:
                raised.append(error)
            try:
                for _ in range(10_000):
                    threading.get_ident()
            except BaseException as error:
                raised.append(error)
            print([type(error).__name__ for error in raised].count("Stop"))
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    """
    ran = run_plainly(tmp_path, source)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "1\n", "")
