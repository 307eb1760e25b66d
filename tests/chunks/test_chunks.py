"""`dpmem.chunks`: each source, bit for bit, cut in any way; turns, and what becomes of arrays after them."""

import gc
import random
import sys
import warnings

import dpctl
import dpnp
import numpy as np
import pytest
from test_sources import DTYPES, KINDS, of_kind, sample

import dpmem
from dpmem import _buffers


def bits(array):
    return array.tobytes(), array.dtype, array.shape


def gathered(source, like, rows, **options):
    """A source's values, put together again by the indexes."""
    out = np.zeros(like.shape, like.dtype.newbyteorder("="))
    seen = np.zeros(like.shape, int)
    for index, x in dpmem.chunks(source, rows, **options):
        assert type(x) is dpnp.ndarray
        assert x.flags.c_contiguous
        out[index] = dpnp.asnumpy(x)
        seen[index] += 1
    assert (seen == 1).all()
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_arrives_once_and_bit_for_bit(kind, way, tmp_path):
    pick = random.Random(kind)
    for round_ in range(16):
        dtype = np.dtype(pick.choice([name for name in DTYPES if name != "f2"])).newbyteorder(pick.choice("<>"))
        shape = tuple(pick.choice([1, 2, 5, 17]) for _ in range(pick.choice([1, 2, 3])))
        array = np.array(sample(shape, dtype.newbyteorder("=").str, round_).astype(dtype), order=pick.choice("CF"))
        axis, rows = pick.randrange(len(shape)), pick.choice([1, 2, 3, 16, 100])
        found = gathered(of_kind(kind, array, tmp_path), array, rows, axis=axis, in_flight=pick.choice([1, 2, 3]))
        assert bits(found) == bits(np.ascontiguousarray(array.astype(dtype.newbyteorder("="))))


def test_files_are_joined_and_chunks_reach_across(way, tmp_path):
    pieces = [sample((rows, 3), "f4", rows) for rows in (5, 0, 1, 11)]
    for number, piece in enumerate(pieces):
        np.save(tmp_path / f"{number}.npy", piece)
    whole = np.concatenate(pieces)
    for rows in (1, 4, 6, 17, 50):
        assert bits(gathered(f"{tmp_path}/*.npy", whole, rows)) == bits(whole)


def test_zipped_sources_come_as_tuples(way, tmp_path):
    a, b = sample((10, 2), "f8"), sample((10,), "i4")
    np.save(tmp_path / "b.npy", b)
    seen = []
    for index, (x, y) in dpmem.chunks((a[:, ::-1], tmp_path / "b.npy"), 4):
        assert bits(dpnp.asnumpy(x)) == bits(a[index, ::-1].copy())
        assert bits(dpnp.asnumpy(y)) == bits(b[index])
        seen.append(index)
    assert seen == [slice(0, 4), slice(4, 8), slice(8, 10)]


def test_index_fits_the_axis():
    array = np.arange(24).reshape(2, 3, 4)
    assert [index for index, _ in dpmem.chunks(array, 2, axis=-1)] == [
        (slice(None), slice(None), slice(0, 2)),
        (slice(None), slice(None), slice(2, 4)),
    ]
    out = np.zeros_like(array)
    for index, x in dpmem.chunks(array, 2, axis=1):
        out[index] = dpnp.asnumpy(x)
    assert (out == array).all()


def test_start_stop_and_length():
    array = np.arange(10)
    it = dpmem.chunks(array, 4, start=1, stop=8)
    assert (len(it), it.rows, it.source.shape) == (2, 4, (10,))
    assert [(index, dpnp.asnumpy(x).tolist()) for index, x in it] == [
        (slice(1, 5), [1, 2, 3, 4]),
        (slice(5, 8), [5, 6, 7]),
    ]
    assert list(dpmem.chunks(array, start=10)) == []
    for wrong in ({"start": 11}, {"start": -1}, {"start": 3, "stop": 2}, {"stop": 11}, {"in_flight": 0}, {"rows": 0}):
        with pytest.raises(ValueError, match=r"must|at least"):
            dpmem.chunks(array, **wrong)
    # In their own arithmetic, 100 + 100 is negative.
    assert [index.stop for index, _ in dpmem.chunks(np.zeros(250), np.int8(100), axis=np.int8(0))] == [100, 200, 250]
    for name in ("rows", "start", "stop", "in_flight", "axis"):
        with pytest.raises(TypeError, match=rf"expected a whole number for {name}, got 1\.5"):
            dpmem.chunks(array, **{name: 1.5})
    with pytest.raises(TypeError, match="not both"):
        dpmem.chunks(array, device="cpu", queue=dpctl.SyclQueue())


def test_empty_data_and_single_elements(way):
    assert list(dpmem.chunks(np.zeros((0, 3)))) == []
    assert [x.shape for _, x in dpmem.chunks(np.zeros((5, 0)), 2)] == [(2, 0), (2, 0), (1, 0)]
    assert [dpnp.asnumpy(x).tolist() for _, x in dpmem.chunks(np.array([7.5]))] == [[7.5]]
    assert gathered(np.ones((1, 1, 1)), np.ones((1, 1, 1)), 5, axis=2) == 1


def test_default_rows_fit_and_are_no_less_than_one(monkeypatch):
    queue = dpctl.SyclQueue()
    rows = dpmem.chunks(np.broadcast_to(np.float32(0), (10**9, 4)), queue=queue).rows
    assert 1 << 20 <= rows * 16 <= 64 << 20
    # One row is more than would be comfortable.
    assert dpmem.chunks(np.broadcast_to(np.float32(0), (3, 10**9)), queue=queue).rows == 1
    # Little is free.
    from dpmem import _devices

    little = _devices.MemoryInfo((1 << 30, 1 << 20, "a test", "exact"), 0)
    monkeypatch.setattr(_devices, "mem_get_info", lambda device: little)
    assert dpmem.chunks(np.zeros(10**6), queue=queue, in_flight=3).rows == int((1 << 20) * 0.6) // 3 // 8


def test_arrays_are_on_the_queue_that_was_asked_for(way):
    queue = dpctl.SyclQueue()
    for _, x in dpmem.chunks(np.arange(6.0), 2, queue=queue):
        assert x.sycl_queue == queue
        assert dpnp.asnumpy(x + 1).size == 2


def test_buffers_are_used_again(way):
    dpmem.start()
    try:
        allocated = dpmem.memory_stats()["allocation.all.allocated"]
        addresses = [x.get_array()._pointer for _, x in dpmem.chunks(np.zeros(1000), 10)]
        assert len(addresses) == 100
        assert len(set(addresses)) <= 2
        # Two device buffers, and two on the host where they are needed; a context has a byte of its own.
        assert dpmem.memory_stats()["allocation.all.allocated"] - allocated <= 6
        gc.collect()
    finally:
        dpmem.stop()


USES = """x + 1; 1 + x; x[0]; x[0] = 1; len(x); x.shape; x.sum(); dpnp.sum(x); dpnp.asnumpy(x); float(x); bool(x)
iter(x); x += 1; x @ x; x == x; ones + x; dpnp.add(ones, 1, out=x); dpnp.copyto(ones, x); dpnp.concatenate([x])
np.asarray(x); dpnp.asarray(x); dpnp.where(x, x, x); dpnp.from_dlpack(x); x.get_array(); x.sycl_queue; ones[x]; str(x)
x.__sycl_usm_array_interface__; dpmem.where(x); dpnp.fft.fft(x); dpnp.linalg.norm(x); x.T; x.copy(); x.asnumpy()"""


def test_an_array_raises_after_its_turn(way):
    kept = [x for _, x in dpmem.chunks(np.arange(9.0), 3)]
    assert [repr(x) for x in kept[:1]] == ["<the turn of the chunk with rows 0 to 3: over>"]
    names = {"dpnp": dpnp, "np": np, "dpmem": dpmem, "ones": dpnp.ones(3)}
    for use in USES.replace("\n", ";").split(";"):
        for x in kept:
            with pytest.raises(RuntimeError, match=r"the turn of the chunk with rows . to . is over"):
                exec(use.strip(), {**names, "x": x})
    assert isinstance(kept[0], dpnp.ndarray)


def test_it_is_valid_until_the_next_is_asked_for(way):
    it = dpmem.chunks(np.arange(6.0), 3)
    _, first = next(it)
    assert dpnp.asnumpy(first.sum()) == 3
    _, second = next(it)
    with pytest.raises(RuntimeError, match="rows 0 to 3 is over"):
        first.sum()
    # Whoever stops here keeps the array whose turn it is: nobody will fill it any more.
    it.close()
    assert dpnp.asnumpy(second.sum()) == 12
    assert list(it) == []


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:],
        lambda x: x.reshape(2, 2),
        lambda x: x.get_array(),
        lambda x: x.get_array()[:2],
        lambda x: x.view("i8").view("f8"),
        lambda x: dpnp.from_dlpack(x),
        lambda x: x.__dlpack__(),
        lambda x: x.get_array().usm_data,
    ],
)
def test_views_that_escape_keep_their_values(view, way):
    def values(escaped):
        if type(escaped).__name__ == "PyCapsule":
            # It can be taken once.
            return None
        if hasattr(escaped, "copy_to_host"):
            return np.frombuffer(bytes(escaped.copy_to_host()), "f8").tolist()
        return dpnp.asnumpy(escaped).ravel().tolist()

    kept, expected = [], []

    def keep():
        for _, x in dpmem.chunks(np.arange(32.0), 4):
            kept.append(view(x))
            expected.append(values(kept[-1]))

    with pytest.warns(RuntimeWarning, match="still there") as caught:
        keep()
    assert len(caught) == 1
    # Who holds a capsule is not to be found out; of anything else it is told.
    assert (type(kept[0]).__name__ == "PyCapsule") or "held by " in str(caught[0].message)
    assert caught[0].filename == __file__
    assert [values(escaped) for escaped in kept] == expected


def test_a_variable_that_is_bound_anew_each_turn_costs_one_buffer(way):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        addresses, total = set(), 0.0
        for _, x in dpmem.chunks(np.arange(400.0), 4):
            part = x[:2]
            addresses.add(x.get_array()._pointer)
            total += float(part.sum())
    assert len(addresses) <= 3
    assert total == sum(float(row[:2].sum()) for row in np.arange(400.0).reshape(100, 4))


def test_views_in_garbage_are_collected_before_any_buffer_is_left(way):
    class Cycle:
        def __init__(self, x):
            self.view, self.me = x[:1], self

    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            addresses = set()
            for _, x in dpmem.chunks(np.zeros(40), 4):
                addresses.add(x.get_array()._pointer)
                Cycle(x)
    finally:
        gc.enable()
    assert len(addresses) <= 4


@pytest.mark.parametrize("in_flight", [1, 2, 3])
@pytest.mark.parametrize("work", ["matmul", "fft", "chain"])
def test_a_buffer_is_not_filled_while_queued_work_reads_it(way, in_flight, work):
    functions = {
        "matmul": lambda x: x[0] @ x[0] @ x[0],
        "fft": lambda x: dpnp.fft.fft2(dpnp.fft.fft2(x)).real,
        "chain": lambda x: dpnp.sqrt(dpnp.exp(dpnp.sin(x))) + x,
    }
    function = functions[work]
    array = np.random.default_rng(1).random((24, 128, 128)).astype("f4")
    expected = [dpnp.asnumpy(function(dpnp.array(array[k : k + 1]))) for k in range(24)]
    # Nothing waits in here: the host runs ahead of the device as far as it is let.
    found = [function(x) for _, x in dpmem.chunks(array, 1, in_flight=in_flight)]
    for one, other in zip(found, expected, strict=True):
        assert bits(dpnp.asnumpy(one)) == bits(other)


@pytest.mark.parametrize("in_flight", [1, 3])
def test_a_buffer_is_not_filled_while_work_reads_a_view_that_was_let_go(way, in_flight):
    array = np.random.default_rng(1).random((12, 1 << 19)).astype("f4")
    busy, found, last = dpnp.ones(1 << 21, dtype="f4"), {}, None
    for index, x in dpmem.chunks(array, 1, in_flight=in_flight):
        if last is None:
            last = x[:]
            continue
        # Work on a view of the chunk before, as of its edge: queued after that chunk's turn, and behind other work.
        slow = busy
        for _ in range(8):
            slow = dpnp.sin(slow)
        found[index.start - 1], last = last * 2, None
    for row, doubled in found.items():
        assert bits(dpnp.asnumpy(doubled)) == bits(array[row : row + 1] * np.float32(2))


def test_work_on_another_queue_is_waited_for(way):
    # The same memory seen by a second queue of the context: no copy is made, so nothing else would wait for it.
    array = np.random.default_rng(1).random((12, 256, 256))
    queue = dpctl.SyclQueue()
    other = dpctl.SyclQueue(queue.sycl_context, queue.sycl_device)
    expected = [np.sort(part, axis=None) for part in array]
    found = []
    for _, x in dpmem.chunks(array, 1, queue=queue):
        there = dpnp.ndarray(x.shape, x.dtype, buffer=x.get_array().to_device(other), sycl_queue=other)
        assert there.get_array()._pointer == x.get_array()._pointer
        found.append(dpnp.sort(there, axis=None))
        del there
    for one, other_one in zip(found, expected, strict=True):
        assert bits(dpnp.asnumpy(one)) == bits(other_one)


def test_what_a_device_cannot_compute_with_is_refused():
    class Weak:
        has_aspect_fp64 = has_aspect_fp16 = False
        name = "Weak"

    from dpmem import _chunks, _sources

    for dtype in ("f8", "c16", "f2"):
        with pytest.raises(TypeError, match="which Weak can't compute with"):
            _chunks._check_device(_sources.open_source(np.zeros(2, dtype)), Weak)
    for dtype in ("f4", "c8", "i8", "?"):
        _chunks._check_device(_sources.open_source(np.zeros(2, dtype)), Weak)


def test_the_host_reaches_memory_of_the_cpu_and_that_was_looked_at():
    queue = dpctl.SyclQueue("cpu")
    assert _buffers.host_reaches_memory_of(queue)
    assert not _buffers._native.stream_reachable(0, 10)
    assert not _buffers._native.stream_reachable(sys.maxsize, 10)


def test_printing_says_what_it_is():
    assert repr(dpmem.chunks(np.zeros((6, 2)), 4)) == "<chunks of 4 rows of array of 6 × 2: 6 × 2 float64, 96 B>"
