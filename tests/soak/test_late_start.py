"""`dpmem.start()` beside threads that allocate: no block is lost between what is found and what is recorded."""

import threading

import dpctl
import dpctl.memory as usm
import pytest

import dpmem


@pytest.mark.parametrize("attempt", range(50))
def test_late_start_beside_threads_that_allocate_loses_no_block(attempt):
    dpmem.stop()
    queue, kept, go_on = dpctl.SyclQueue(), [], [True]

    def work():
        while go_on and len(kept) < 20_000:
            kept.append(usm.MemoryUSMDevice(1000, queue=queue))

    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    dpmem.start()
    go_on.clear()
    [t.join() for t in threads]
    assert dpmem.memory_allocated() == sum(block.nbytes for block in kept)
    dpmem.stop()
