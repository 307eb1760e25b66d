"""Forks a hundred times while threads allocate and free; the children do what a forked child can."""

import gc
import os
import signal
import sys
import threading
import time

import dpctl
import dpctl.memory

FORKS = 100
CHILD_S = 60

if "start" in sys.argv:
    import dpmem

    dpmem.start()

queue = dpctl.SyclQueue()
ended = threading.Event()
pairs = 0


def allocate(size):
    global pairs
    while not ended.is_set():
        kept = [dpctl.memory.MemoryUSMDevice(size + n, queue=queue) for n in range(20)]
        del kept
        pairs += 1


def child():
    gc.collect()
    sum(n * n for n in range(1000))
    if "dpmem" in sys.modules and hasattr(sys.modules["dpmem"], "is_tracking"):
        os._exit(1 if sys.modules["dpmem"].is_tracking() else 0)
    os._exit(0)


threads = [threading.Thread(target=allocate, args=(size,)) for size in (100, 4096, 50_000)]
for thread in threads:
    thread.start()
codes = []
for _ in range(FORKS):
    before = pairs
    while pairs == before:
        time.sleep(0.0005)
    pid = os.fork()
    if pid == 0:
        child()
    deadline = time.monotonic() + CHILD_S
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            break
        time.sleep(0.001)
    codes.append(os.waitstatus_to_exitcode(status))
ended.set()
for thread in threads:
    thread.join()
print(f"{codes.count(0)} of {FORKS} children ended well", flush=True)
sys.exit(0 if codes.count(0) == FORKS else 1)
