"""`dpmem.map_chunks` on the CPU device: outputs, reductions, errors, and what it leaves behind."""

import errno
import gc
import os
import sys
import warnings

import dpnp
import numpy as np
import pytest

import dpmem
from dpmem import _native

ROWS = 1000


@pytest.fixture
def data():
    return np.random.default_rng(5).standard_normal((ROWS, 6))


@pytest.fixture(autouse=True)
def left_as_it_was():
    assert not dpmem.is_tracking()
    yield
    assert not dpmem.is_tracking()
    assert _native.pool_status()[:2] == (False, False)


def whole(fn, data):
    return dpnp.asnumpy(fn(dpnp.asarray(data)))


@pytest.mark.parametrize("rows", [1, 7, 250, 999, 1000, 5000])
def test_rows_of_results_go_to_a_file_with_the_bits_of_one_call(data, tmp_path, rows):
    path = tmp_path / "out.npy"

    def fn(x):
        return dpnp.exp(x) * 2 + 1

    answer = dpmem.map_chunks(fn, data, out=path, rows=rows)
    assert isinstance(answer, np.memmap)
    assert np.load(path).tobytes() == answer.tobytes() == whole(fn, data).tobytes()
    assert os.listdir(tmp_path) == ["out.npy"]


def test_rows_may_be_a_number_of_numpys(data):
    assert np.array_equal(dpmem.map_chunks(lambda x: x, data, rows=np.int8(100)), data)


@pytest.mark.parametrize("order", ["C", "F"])
def test_outputs_that_take_slices(data, order):
    class Sliceable:
        """As zarr and h5py arrays are written to."""

        def __init__(self, array):
            self.array, self.shape, self.dtype = array, array.shape, array.dtype

        def __setitem__(self, index, value):
            self.array[index] = value

    expected = whole(lambda x: x + 1, data)
    for make in (lambda a: a, Sliceable):
        target = np.zeros((ROWS, 6), order=order)
        out = make(target)
        assert dpmem.map_chunks(lambda x: x + 1, data, out=out, rows=300) is out
        assert target.tobytes() == expected.tobytes()
    resident = dpnp.zeros((ROWS, 6))
    assert dpmem.map_chunks(lambda x: x + 1, data, out=resident, rows=300) is resident
    assert dpnp.asnumpy(resident).tobytes() == expected.tobytes()
    narrow = np.zeros((ROWS, 6), "f4", order=order)
    dpmem.map_chunks(lambda x: x + 1, data, out=narrow, rows=300)
    assert np.array_equal(narrow, expected.astype("f4"))


def test_an_output_of_another_queue(data):
    import dpctl

    out = dpnp.zeros((ROWS, 6), sycl_queue=dpctl.SyclQueue(dpnp.empty(0).sycl_device))
    dpmem.map_chunks(lambda x: x + 1, data, out=out, rows=300)
    assert np.array_equal(dpnp.asnumpy(out), data + 1)


def test_an_array_may_be_written_over_itself_and_nothing_else_that_is_read(data, tmp_path):
    expected = whole(lambda x: x + 1, data)
    inplace = data.copy()
    assert dpmem.map_chunks(lambda x: x + 1, inplace, out=inplace, rows=90) is inplace
    assert np.array_equal(inplace, expected)
    file = tmp_path / "m.npy"
    np.save(file, data)
    mapped = np.load(file, mmap_mode="r+")
    for source, out, more in [
        (data[:-1], data[1:], {}),
        (data, data[::-1], {}),
        ((data, data[::-1]), data, {}),
        ([data[:500], data[500:]], data, {}),
        (data, data, {"reduce": "sum"}),
        (data, data, {"resume": tmp_path / "r"}),
        (file, mapped, {}),
        (np.load(file, mmap_mode="r"), mapped, {}),
    ]:
        with pytest.raises(ValueError, match="is memory of the source"):
            dpmem.map_chunks(lambda *x: x[0] + 1, source, out=out, **more)
    assert np.load(file).tobytes() == data.tobytes()
    # Other columns of one array share nothing.
    wide = np.zeros((ROWS, 12))
    wide[:, :6] = data
    dpmem.map_chunks(lambda x: x + 1, wide[:, :6], out=wide[:, 6:], rows=90)
    assert np.array_equal(wide[:, 6:], expected)


def test_a_folder_in_the_place_of_the_output_is_noticed_before_the_work(data, tmp_path):
    (tmp_path / "o.npy").mkdir()
    plan = dpmem.plan_chunks(lambda x: x, data)
    called = []
    with pytest.raises(IsADirectoryError, match=r"o\.npy"):
        dpmem.map_chunks(lambda x: (called.append(0), x)[1], data, out=tmp_path / "o.npy", plan=plan)
    assert called == []


def test_a_file_is_written_by_one_job_at_a_time(data, tmp_path):
    out = tmp_path / "o.npy"

    def another(x):
        with pytest.raises(BlockingIOError, match=r"another job is writing.*o\.npy\.partial"):
            dpmem.map_chunks(lambda y: y, data, out=out, plan=plan)
        return x * 2

    plan = dpmem.plan_chunks(lambda x: x, data)
    assert np.array_equal(dpmem.map_chunks(another, data, out=out, plan=plan), data * 2)


def test_a_resume_file_is_written_by_one_job_at_a_time(data, tmp_path):
    words = {"reduce": "sum", "rows": 300, "resume": tmp_path / "r"}
    plan = dpmem.plan_chunks(lambda x: x, data)

    def fn(x):
        if nested:
            nested.clear()
            with pytest.raises(BlockingIOError, match=r"another job is writing.*r'"):
                dpmem.map_chunks(fn, data, plan=plan, **words)
        return x

    nested = [True]
    assert np.allclose(dpmem.map_chunks(fn, data, plan=plan, **words), data.sum(axis=0))
    assert not nested
    assert os.listdir(tmp_path) == []


def test_the_program_may_change_its_folder(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    plan = dpmem.plan_chunks(lambda x: x, data)

    def moving(x):
        os.chdir(tmp_path / "elsewhere")
        return x

    dpmem.map_chunks(moving, data, out="o.npy", plan=plan, rows=300, resume=True)
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "o.npy"]
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_memmap_is_written(data, tmp_path):
    out = np.lib.format.open_memmap(tmp_path / "m.npy", "w+", "f8", (ROWS,))
    dpmem.map_chunks(lambda x: x.sum(axis=1), data, out=out, rows=128)
    assert np.load(tmp_path / "m.npy").tobytes() == whole(lambda x: x.sum(axis=1), data).tobytes()


def test_without_anything_results_are_joined(data):
    assert dpmem.map_chunks(lambda x: x, data, rows=99).tobytes() == data.tobytes()
    kept = dpmem.map_chunks(lambda x: x[x > 1], data, rows=99)
    assert kept.tobytes() == data[data > 1].tobytes()
    with pytest.raises(ValueError, match="say what to do"):
        dpmem.map_chunks(lambda x: x.sum(axis=0), data)


@pytest.mark.parametrize(
    ("fn", "place"),
    [(lambda x: x.T, 1), (lambda x: x[:, 1:3], 0), (lambda x: x[:, ::-1], 0), (lambda x: x.reshape(-1, 2, 3), 0)],
)
def test_results_that_are_views_of_the_chunk(data, tmp_path, fn, place):
    expected = whole(fn, data)
    assert dpmem.map_chunks(fn, data, rows=300, out=tmp_path / "o.npy").tobytes() == expected.tobytes()
    assert dpmem.map_chunks(fn, data, rows=300).tobytes() == expected.tobytes()
    joined = dpmem.map_chunks(fn, data, rows=300, reduce=lambda a, b: dpnp.concatenate([a, b], axis=place))
    assert joined.tobytes() == expected.tobytes()


def test_a_function_may_change_its_chunk_and_the_source_stays(data, tmp_path):
    before = data.copy()
    file = tmp_path / "source.npy"
    np.save(file, data)

    def doubled(x):
        x *= 2
        return x

    for source in (data, file):
        assert np.array_equal(dpmem.map_chunks(doubled, source, rows=64), before * 2)
    assert np.array_equal(data, before)
    assert np.array_equal(np.load(file), before)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_any_axis(axis, tmp_path):
    data = np.random.default_rng(2).standard_normal((12, 20, 30))
    got = dpmem.map_chunks(lambda x: x * 3, data, axis=axis, rows=7, out=tmp_path / "o.npy")
    assert np.array_equal(got, data * 3)
    got = dpmem.map_chunks(lambda x: x * 3, data, axis=axis, rows=7, reduce="sum")
    assert np.allclose(got, (data * 3).sum(axis=axis), rtol=1e-13)


def test_several_sources(data):
    other = np.arange(ROWS, dtype="i4")
    got = dpmem.map_chunks(lambda x, n: x * n[:, None], (data, other), rows=77)
    assert np.array_equal(got, data * other[:, None])
    turned = dpmem.map_chunks(lambda x, n: x * n, (data.T.copy(), other), axis=-1, rows=77)
    assert np.array_equal(turned, data.T * other)


def test_both_an_output_and_a_reduction(data, tmp_path):
    got = dpmem.map_chunks(lambda x: x * 2, data, out=tmp_path / "o.npy", reduce="max", rows=130)
    assert np.array_equal(got, (data * 2).max(axis=0))
    assert np.array_equal(np.load(tmp_path / "o.npy"), data * 2)


def test_results_may_be_numbers_or_numpy_arrays(data):
    assert dpmem.map_chunks(lambda x: float(x.max()), data, reduce="max", rows=100) == data.max()
    assert np.array_equal(dpmem.map_chunks(lambda x: dpnp.asnumpy(x) + 1, data, rows=100), data + 1)


def test_nothing_and_little(tmp_path):
    empty = np.empty((0, 5))
    assert dpmem.map_chunks(lambda x: x + 1, empty, out=tmp_path / "e.npy").shape == (0, 5)
    assert np.load(tmp_path / "e.npy").shape == (0, 5)
    assert dpmem.map_chunks(lambda x: x.T, empty, out=tmp_path / "e.npy").shape == (5, 0)
    assert np.array_equal(dpmem.map_chunks(lambda x: x, empty, reduce="sum"), np.zeros(5))
    assert dpmem.map_chunks(lambda x: x.sum(), empty, reduce="sum") == 0
    with pytest.raises(ValueError, match="no rows"):
        dpmem.map_chunks(lambda x: x, empty, reduce="min")
    with pytest.raises(ValueError, match="no rows to plan"):
        dpmem.plan_chunks(lambda x: x, empty)
    one = np.full((1, 1), 3.0)
    assert dpmem.map_chunks(lambda x: x * 2, one).tolist() == [[6.0]]
    assert dpmem.map_chunks(lambda x: x.sum(axis=0, keepdims=True), one, reduce="sum").tolist() == [[3.0]]
    assert dpmem.map_chunks(lambda x: x, np.array([4.0]), reduce="mean") == 4.0


def test_a_failure_of_the_function_is_its_own_with_the_chunk_noted(data, tmp_path):
    def picky(x):
        if float(x.min()) == -100:
            raise KeyError("bad data")
        return x

    plan = dpmem.plan_chunks(picky, data)
    data[777, 2] = -100
    (tmp_path / "old.npy").write_bytes(b"as before")
    with pytest.raises(KeyError, match="bad data") as failure:
        dpmem.map_chunks(picky, data, out=tmp_path / "old.npy", rows=100, plan=plan)
    with pytest.raises(KeyError, match="bad data") as earlier:
        dpmem.map_chunks(picky, data)
    if sys.version_info >= (3, 11):
        assert failure.value.__notes__ == ["in chunk 7, rows 700 to 800 of 1000"]
        assert earlier.value.__notes__ == ["while the function was tried on 1000 of 1000 rows"]
    assert (tmp_path / "old.npy").read_bytes() == b"as before"
    assert os.listdir(tmp_path) == ["old.npy"]


def test_results_of_another_shape_or_type_than_tried_are_refused(data):
    def changing(x):
        return x if float(x.min()) > -50 else x[:, :3]

    def narrowing(x):
        return x if float(x.min()) > -50 else x.astype("f4")

    plans = [dpmem.plan_chunks(fn, data) for fn in (changing, narrowing)]
    data[777, 2] = -100
    with pytest.raises(ValueError, match=r"shape \(100, 6\).*got \(100, 3\)"):
        dpmem.map_chunks(changing, data, rows=100, plan=plans[0])
    with pytest.raises(ValueError, match=r"results of type float64.*float32"):
        dpmem.map_chunks(narrowing, data, rows=100, plan=plans[1])
    with pytest.raises(ValueError, match="grows in 2 directions"):
        dpmem.map_chunks(lambda x: x @ x.T, data)
    for result in ("text", None, (1.0, 2.0), [1.0]):
        with pytest.raises(TypeError, match="array or a number"):
            dpmem.map_chunks(lambda x, result=result: result, data, reduce="sum")


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"out": "x.bin"}, ValueError, r"\.npy"),
        ({"out": "missing/o.npy"}, FileNotFoundError, "missing"),
        ({"out": np.zeros((3, 3))}, ValueError, r"shape \(1000, 6\)"),
        ({"out": np.zeros((ROWS, 6), "i4")}, TypeError, "to hold float64"),
        ({"out": object()}, TypeError, "takes slices"),
        ({"reduce": "median"}, ValueError, "sum, mean, min, max, concatenate"),
        ({"reduce": 3}, TypeError, "name of a reduction"),
        ({"rows": 0}, ValueError, "at least 1"),
        ({"budget": 0}, ValueError, "above 0"),
        ({"budget": 1.5}, ValueError, "at most 1"),
        ({"in_flight": 0}, ValueError, "in flight"),
        ({"axis": 5}, ValueError, "axis"),
        ({"plan": "x"}, TypeError, "plan_chunks"),
        ({"resume": True}, ValueError, "out= that is a path"),
        ({"resume": "x.resume"}, ValueError, "outlives the process"),
        ({"resume": 7, "reduce": "sum"}, TypeError, "path of a resume file"),
        ({"device": "nowhere:0"}, Exception, "nowhere"),
    ],
)
def test_arguments_that_make_no_sense(data, tmp_path, monkeypatch, arguments, error, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=text):
        dpmem.map_chunks(lambda x: x, data, **arguments)
    assert os.listdir(tmp_path) == []


def test_what_can_not_be_called_is_refused(data):
    with pytest.raises(TypeError, match="expected a function of a chunk, got 'x'"):
        dpmem.map_chunks("x", data)


def test_results_of_as_many_dimensions_as_there_are_rows_are_refused(data):
    rows = []

    def flattening(x):
        rows.append(x.shape[0])
        return x if x.shape[0] == rows[0] else x.sum(axis=1)

    with pytest.raises(ValueError, match=r"rows give 2 dimensions, \d+ 1$"):
        dpmem.map_chunks(flattening, data)


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_an_output_that_can_not_be_written_is_named_and_leaves_nothing(data, tmp_path, monkeypatch, call):
    def failing(*_):
        raise OSError(errno.EIO, "says the disk")

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(OSError, match=r"Input/output error while writing \d+ bytes at offset 0 of.*o\.npy\.partial"):
        dpmem.map_chunks(lambda x: x, data, out=tmp_path / "o.npy")
    assert os.listdir(tmp_path) == []


def test_a_write_that_writes_nothing_ends_the_job(data, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    for words in ({"out": tmp_path / "o.npy"}, {"reduce": "sum", "resume": tmp_path / "r"}):
        with pytest.raises(OSError, match="No space left on device while writing"):
            dpmem.map_chunks(lambda x: x, data, **words)
    assert "o.npy.partial" not in os.listdir(tmp_path)


def test_an_empty_output_that_gets_no_name_leaves_nothing(tmp_path, monkeypatch):
    def failing(*_):
        raise OSError(errno.EACCES, "no")

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(PermissionError):
        dpmem.map_chunks(lambda x: x, np.empty((0, 5)), out=tmp_path / "o.npy")
    assert os.listdir(tmp_path) == []


def test_out_needs_rows(data, tmp_path):
    with pytest.raises(ValueError, match="has no rows of its own"):
        dpmem.map_chunks(lambda x: x.sum(), data, out=tmp_path / "o.npy")
    with pytest.raises(ValueError, match="depends on the data"):
        dpmem.map_chunks(lambda x: x[x > 0], data, out=tmp_path / "o.npy")
    assert os.listdir(tmp_path) == []


def test_progress(data, tmp_path, monkeypatch):
    told = []
    dpmem.map_chunks(lambda x: x, data, rows=400, progress=lambda done, total: told.append((done, total)))
    assert told == [(400, ROWS), (800, ROWS), (1000, ROWS)]
    shown = []

    class Bar:
        def __init__(self, total, initial, **_):
            shown.append((initial, total))

        def update(self, rows):
            shown.append(rows)

        def close(self):
            shown.append("closed")

    class Tqdm:
        tqdm = Bar

    monkeypatch.setitem(sys.modules, "tqdm", Tqdm)
    monkeypatch.setitem(sys.modules, "tqdm.auto", Tqdm)
    dpmem.map_chunks(lambda x: x, data, rows=600)
    assert shown == [], "standard error is no terminal"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    dpmem.map_chunks(lambda x: x, data, rows=600)
    assert shown == [(0, ROWS), 600, 400, "closed"]
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    dpmem.map_chunks(lambda x: x, data, rows=600)
    with pytest.raises(ImportError, match="pip install tqdm"):
        dpmem.map_chunks(lambda x: x, data, rows=600, progress=True, out=tmp_path / "o.npy")
    assert os.listdir(tmp_path) == []


def test_the_pool_and_a_limit_of_the_user_stay(data):
    seen = []

    def watching(x):
        seen.append(_native.pool_status()[1])
        return x

    dpmem.map_chunks(watching, data, rows=500)
    assert set(seen) == {True}
    try:
        dpmem.enable_pool()
        dpmem.map_chunks(watching, data, rows=500)
        assert _native.pool_status()[1]
        assert dpmem.is_tracking()
        dpmem.disable_pool()
        assert dpmem.is_tracking()
        dpmem.set_memory_limit("1GiB")
        dpmem.map_chunks(watching, data, rows=500)
        assert _native.pool_status()[:2] == (True, False)
        assert dpmem.set_memory_limit(None) == 1 << 30
    finally:
        dpmem.disable_pool()
        dpmem.stop()
    assert set(seen) == {True}


@pytest.mark.parametrize("step", ["pool_adopt", "pool_cache", "hook_stop"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_whatever_ends_a_job_while_it_borrows_or_gives_back_the_pool(data, monkeypatch, step, error):
    native = getattr(_native, step)
    left = [1]

    def interrupted(*arguments):
        if left:
            left.clear()
            raise error
        return native(*arguments)

    monkeypatch.setattr(_native, step, interrupted)
    if error is RuntimeError and step in ("pool_adopt", "pool_cache"):
        # The job does without.
        assert np.array_equal(dpmem.map_chunks(lambda x: x, data), data)
    else:
        with pytest.raises(error):
            dpmem.map_chunks(lambda x: x, data)
    assert not left
    assert not dpmem.is_tracking()
    assert _native.pool_status()[:2] == (False, False)
    assert _native.hook_status()["phase"] != "installed"


def test_what_the_user_switches_on_meanwhile_stays_on(data):
    try:
        dpmem.map_chunks(lambda x: (dpmem.enable_pool(), x)[1], data, rows=500)
        assert _native.pool_status()[1]
        assert dpmem.is_tracking()
    finally:
        dpmem.disable_pool()
        dpmem.stop()


def test_jobs_in_several_threads(data):
    from concurrent.futures import ThreadPoolExecutor

    dpmem.map_chunks(lambda x: (x**2).sum(axis=1), data, rows=100)
    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(dpmem.map_chunks, lambda x: (x**2).sum(axis=1), data + n, rows=100) for n in range(8)]
        for n, job in enumerate(jobs):
            assert job.result().tobytes() == whole(lambda x: (x**2).sum(axis=1), data + n).tobytes()


def test_a_plan_belongs_to_its_device_and_rows(data, opencl_only):
    plan = dpmem.plan_chunks(lambda x: x, data)
    assert repr(plan).startswith("<ChunkPlan: 8 chunks of 125 rows on opencl:cpu:0")
    with pytest.raises(ValueError, match=r"rows of 48 bytes along axis 0.*of 24 along axis 0"):
        dpmem.map_chunks(lambda x: x, data[:, :3], plan=plan)
    program = """
import dpnp, numpy, dpmem
data = numpy.ones((1000, 6))
seen = []
def fn(x):
    seen.append(x.sycl_device.filter_string)
    return x
plan = dpmem.plan_chunks(fn, data, device="opencl:cpu:0")
seen.clear()
dpmem.map_chunks(fn, data, plan=plan)
print(set(seen))
try:
    dpmem.map_chunks(fn, data, plan=plan, device="gpu")
except ValueError as error:
    print(error)
"""
    ended = opencl_only.run(program)
    assert ended.stdout == "{'opencl:cpu:0'}\nthe plan is for opencl:cpu:0, not for opencl:gpu:0\n", ended.stderr


def test_results_have_memory_of_their_own(data):
    for name in ("sum", "concatenate"):
        found = dpmem.map_chunks(lambda x: x + 1, data, rows=ROWS, reduce=name)
        assert found.flags.owndata
    found = dpmem.map_chunks(lambda x: x.sum(axis=0), data, rows=ROWS, reduce=dpnp.add)
    assert found.flags.owndata


def test_nothing_stays_on_the_device(data, tmp_path):
    dpmem.map_chunks(lambda x: x * 2, data, reduce="sum")
    gc.collect()
    dpmem.start()
    try:
        dpmem.synchronize()
        before = dpmem.memory_allocated()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dpmem.plan_chunks(lambda x: x * 2, data)
            for out in (tmp_path / "o.npy", None):
                dpmem.map_chunks(lambda x: x * 2, data, out=out, rows=100)
                dpmem.map_chunks(lambda x: x.sum(axis=0), data, reduce=dpnp.add, rows=100)
        dpmem.synchronize()
        assert dpmem.memory_allocated() == before
    finally:
        dpmem.stop()
