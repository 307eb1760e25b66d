"""`dpmem.live`, `holders` and `synchronize` on the real CPU device, in this process."""

import gc
import signal
import threading

import dpctl
import dpctl.memory as usm
import dpnp
import numpy as np
import pytest

import dpmem
from dpmem import _holders

MIB = 1 << 20
HERE = "test_live.py"


@pytest.fixture
def recording():
    dpmem.stop()
    gc.collect()
    dpmem.start()
    yield
    dpmem.stop()


def mib(count):
    return dpnp.ones((count, 256, 1024), dtype="f4")


def only(blocks, size):
    (block,) = [block for block in blocks if block.bytes == size]
    return block


def test_live_says_where_what_and_who(recording):
    kept = {"x": mib(3)}
    block = only(dpmem.live(), 3 * MIB)
    assert (block.state, block.kind, block.covered_bytes) == ("referenced", "device", 3 * MIB)
    assert block.device == kept["x"].sycl_device.filter_string
    assert block.file.endswith(HERE)
    assert block.function == "mib"
    assert block.site == f"{block.file}:{block.line} in mib"
    assert block.holders == [
        dpmem.Holder("container", f"{HERE} test_live_says_where_what_and_who(): kept['x']", 3 * MIB)
    ]
    kept.clear()
    assert all(block.bytes != 3 * MIB for block in dpmem.live())


def test_live_is_sorted_and_can_be_asked_of_one_device(recording):
    kept = [mib(1), mib(2)]
    blocks = dpmem.live()
    assert [block.bytes for block in blocks] == sorted((block.bytes for block in blocks), reverse=True)
    name = kept[0].sycl_device.filter_string
    assert len(dpmem.live(name)) == len([block for block in blocks if block.device == name])
    assert len(dpmem.live(kept[0].sycl_device)) == len(dpmem.live(name))
    with pytest.raises(ValueError, match="filter string"):
        dpmem.live("nothing:like:this")
    with pytest.raises(TypeError, match="device"):
        dpmem.live(3)


def test_live_needs_a_recording():
    dpmem.start()
    dpmem.stop()
    with pytest.raises(RuntimeError, match=r"dpmem\.start"):
        dpmem.live()


def test_a_view_holds_the_whole_block(recording):
    cube = mib(4)
    row = cube[0, 0, :10]
    paths = {holder.path.rpartition(": ")[2]: holder.kind for holder in dpmem.holders(row)}
    assert paths == {"cube": "local", "row": "view"}
    del cube
    block = only(dpmem.live(), 4 * MIB)
    assert (block.covered_bytes, block.holders[0].bytes, block.holders[0].kind) == (40, 4 * MIB, "view")
    assert dpmem.holders(row.get_array()) == dpmem.holders(row)
    assert dpmem.holders(row.get_array().usm_data) == dpmem.holders(row)


def test_numpy_arrays_hold_host_blocks(recording):
    copied = mib(1).asnumpy()
    part = copied[0, :2]
    (one, other) = dpmem.holders(copied)
    assert {one.kind, other.kind} == {"host_copy"}
    assert {one.path.rpartition(": ")[2], other.path.rpartition(": ")[2]} == {"copied", "part"}
    assert one.bytes == MIB
    free = np.array(copied)
    with pytest.raises(TypeError, match="USM memory"):
        dpmem.holders(free)
    del part


def test_a_value_without_a_name_is_its_frames(recording):
    def largest(array):
        return only(dpmem.live(), 5 * MIB)

    (holder,) = largest(mib(5)).holders
    assert holder.path.endswith("largest(): array")
    # While the second half of a tuple is made, the first lies on the frame's stack.
    _, blocks = (mib(5), dpmem.live())
    (holder,) = only(blocks, 5 * MIB).holders
    assert (holder.kind, holder.path.rpartition("(): ")[2]) == ("local", "a value without a name")


def test_holders_needs_no_recording_and_does_not_count_itself():
    dpmem.stop()
    found = dpmem.holders(mib(1))
    assert found == []
    assert "no Python object" in str(found)
    x = mib(1)
    (holder,) = dpmem.holders(x)
    assert (holder.kind, holder.bytes) == ("local", MIB)
    memory = usm.MemoryUSMShared(64)
    assert [holder.kind for holder in dpmem.holders(memory)] == ["local"]
    for no_array in (3, None, np.ones(3), "text"):
        with pytest.raises(TypeError, match="USM memory"):
            dpmem.holders(no_array)


def test_work_in_a_queue_holds_what_nobody_else_does(recording):
    x = dpnp.ones((1400, 1400))
    dpmem.synchronize()
    size = x.get_array().usm_data.nbytes
    for _ in range(6):
        x @ x
    waiting = [block for block in dpmem.live() if block.state == "in_flight" and block.bytes == size]
    assert waiting
    assert all(block.holders == [] for block in waiting)
    done = dpmem.synchronize()
    assert done.complete
    # The first of them may have been done before the waiting began.
    assert done.freed_count > 0
    assert done.freed_bytes >= size
    assert str(done).startswith("waited ")
    assert not [block for block in dpmem.live() if block.state == "in_flight"]
    assert dpmem.synchronize().freed_count == 0


def test_an_interrupt_of_synchronize_reaches_the_program(recording):
    x = dpnp.ones((1400, 1400))
    x @ x
    dpmem.synchronize()
    for _ in range(8):
        x @ x
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            dpmem.synchronize()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert dpmem.synchronize().complete


def test_synchronize_of_one_device_and_without_recording(recording):
    queue = dpctl.SyclQueue()
    assert dpmem.synchronize(queue.sycl_device).complete
    assert dpmem.synchronize(queue.sycl_device.filter_string).freed_bytes == 0
    dpmem.stop()
    done = dpmem.synchronize()
    assert (done.freed_bytes, done.freed_count, done.complete) == (None, None, True)
    assert "not known" in str(done)


def test_another_threads_frame_holds(recording):
    ready, done = threading.Event(), threading.Event()

    def works():
        buffer = mib(6)
        ready.set()
        done.wait()
        return buffer

    thread = threading.Thread(target=works, name="loader")
    thread.start()
    ready.wait()
    (holder,) = only(dpmem.live(), 6 * MIB).holders
    done.set()
    thread.join()
    assert (holder.kind, holder.path) == ("thread", f"thread 'loader': {HERE} works(): buffer")


def test_running_out_of_time_is_said(recording, monkeypatch):
    kept = mib(7)
    monkeypatch.setattr(_holders, "LIMIT_S", 0.0)
    assert "ran out of time" in str(dpmem.holders(kept))
    blocks = dpmem.live()
    assert "ran out of time" in blocks.gap
    assert only(blocks, 7 * MIB).bytes == 7 * MIB


def test_only_a_cycle(recording):
    class Node:
        def __init__(self):
            self.itself = self
            self.buffer = mib(8)

    gc.collect()
    gc.disable()
    try:
        Node()
        (holder,) = only(dpmem.live(), 8 * MIB).holders
        assert (holder.kind, holder.path) == ("cycle", "unreachable Node.buffer")
    finally:
        gc.enable()
        gc.collect()
    assert all(block.bytes != 8 * MIB for block in dpmem.live())


def test_everything_prints(recording):
    kept = [mib(1), mib(1)]
    blocks = dpmem.live()
    assert "kept[0] (container)" in str(blocks)
    assert "<pre>" in blocks._repr_html_()
    assert "1 MiB" in str(blocks[0])
    assert "kept[1]" in blocks[0]._repr_html_() + blocks[1]._repr_html_()
    found = dpmem.holders(kept[0])
    assert "kept[0] (container, 1 MiB)" in str(found)
    assert "kept[0]" in found._repr_html_()
    assert "kept[0]" in found[0]._repr_html_()
    assert dpmem.synchronize()._repr_html_().startswith("waited")
