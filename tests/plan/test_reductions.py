"""What reductions come to: as in NumPy, in the order of the chunks, and accurate."""

import math

import dpnp
import numpy as np
import pytest

import dpmem
from dpmem import _combine


@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", ["sum", "mean", "min", "max"])
def test_as_numpy_along_the_rows(name, dtype):
    if dtype == "f2" and not dpnp.empty(0).sycl_device.has_aspect_fp16:
        pytest.skip("this device has no half precision")
    if name in ("min", "max") and dtype == "b1":
        pytest.skip("dpnp has no extremes of truth values")
    rng = np.random.default_rng(1)
    data = (rng.standard_normal((500, 3)) * 20).astype(dtype)
    if dtype.startswith("c"):
        data = data + 1j * data[::-1].astype(dtype)
        data = data.astype(dtype)
    got = dpmem.map_chunks(lambda x: x, data, reduce=name, rows=90)
    expected = getattr(np, name)(data, axis=0)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    exact = name in ("min", "max") or (name == "sum" and np.dtype(dtype).kind in "biu")
    bound = 0 if exact else 20 * np.finfo(expected.dtype).eps * np.abs(data).astype("f8").sum(axis=0).max()
    assert np.abs(got - expected).max() <= bound / (len(data) if name == "mean" else 1)


@pytest.mark.parametrize("name", ["sum", "mean", "min", "max"])
def test_results_without_rows(name):
    data = np.random.default_rng(2).standard_normal((1000, 4))
    got = dpmem.map_chunks(lambda x: getattr(x, name)(axis=0), data, reduce=name, rows=170)
    assert np.allclose(got, getattr(data, name)(axis=0), rtol=1e-12)
    number = dpmem.map_chunks(lambda x: getattr(x, name)(), data, reduce=name, rows=170)
    assert isinstance(number, np.float64)
    assert math.isclose(number, getattr(data, name)(), rel_tol=1e-12)


@pytest.mark.parametrize("name", ["sum", "mean", "min", "max"])
@pytest.mark.parametrize("at", [0, 499, 999])
def test_not_a_number_wins_as_in_numpy(name, at):
    data = np.ones((1000, 2))
    data[at, 1] = np.nan
    assert str(dpmem.map_chunks(lambda x: x, data, reduce=name, rows=100)) == str(getattr(np, name)(data, axis=0))
    assert math.isnan(dpmem.map_chunks(lambda x: getattr(x, name)(), data, reduce=name, rows=100))


def test_chunks_of_which_nothing_is_left_change_nothing():
    data = np.arange(1000.0)
    data[:500] -= 5000

    def positive(x):
        return x[x > 0]

    kept = data[data > 0]
    for name in ("sum", "mean", "min", "max"):
        assert dpmem.map_chunks(positive, data, reduce=name, rows=100) == getattr(np, name)(kept)
    assert np.array_equal(dpmem.map_chunks(positive, data, reduce="concatenate", rows=100), kept)


def test_means_are_weighted_by_rows():
    data = np.arange(1000.0)
    assert dpmem.map_chunks(lambda x: x.mean(), data, reduce="mean", rows=999) == data.mean()
    assert dpmem.map_chunks(lambda x: x, data.astype("i4"), reduce="mean", rows=999) == data.mean()


def test_concatenate_joins_numbers_and_arrays():
    data = np.arange(12.0).reshape(6, 2)
    assert dpmem.map_chunks(lambda x: x.sum(), data, reduce="concatenate", rows=2).tolist() == [6, 22, 38]
    assert dpmem.map_chunks(lambda x: x.sum(axis=0), data, reduce="concatenate", rows=3).tolist() == [6, 9, 24, 27]


def test_an_own_function_is_called_in_order_and_pairwise():
    data = np.arange(13.0)
    letters = "abcdefghijklm"
    joined = dpmem.map_chunks(lambda x: float(x[0]), data, rows=1, reduce=lambda a, b: _Word(a, b))
    assert joined.letters(letters) == letters
    assert joined.depth == 4


class _Word:
    """What two results are joined to, with the depth of the tree."""

    def __init__(self, first, second):
        self.parts = [first, second]
        self.depth = 1 + max(part.depth if isinstance(part, _Word) else 0 for part in self.parts)

    def letters(self, alphabet):
        return "".join(
            part.letters(alphabet) if isinstance(part, _Word) else alphabet[int(part)] for part in self.parts
        )


def test_float_sums_are_as_accurate_as_pairwise_ones():
    count = 1 << 18
    data = np.full(count, np.float32(0.1))
    exact = count * float(np.float32(0.1))
    got = dpmem.map_chunks(lambda x: x.sum(), data, reduce="sum", rows=64)
    one_by_one = np.float32(0)
    for part in data.reshape(-1, 64).sum(axis=1):
        one_by_one += part
    bound = np.finfo("f4").eps * math.log2(count) * exact
    assert got.dtype == np.float32
    assert abs(float(got) - exact) <= bound
    assert abs(float(got) - exact) <= abs(float(one_by_one) - exact)


def test_a_merge_that_fails_loses_nothing_and_counts_nothing_twice():
    failing = []

    def combine(a, b):
        if failing:
            raise MemoryError
        return a + b

    tree = _combine.Tree()
    for value in "abc":
        tree.push(value)
        tree.merge(combine)
    before = list(tree.levels)
    failing.append(True)
    for value in "de":
        tree.push(value)
        with pytest.raises(MemoryError):
            tree.merge(combine)
    assert tree.levels == [*before, (0, "d"), (0, "e")]
    failing.clear()
    tree.merge(combine)
    assert len(tree.levels) == 1
    tree.push("f")
    assert tree.total(combine) == "abcdef"


def test_results_that_are_one_array_each_time():
    """The function fills an array of its own, and the reduction changes its first argument."""
    data = np.arange(4000.0).reshape(1000, 4)
    scratch = dpnp.zeros(4)
    host = np.zeros(4)

    def on_device(x):
        dpnp.sum(x, axis=0, out=scratch)
        return scratch

    def on_host(x):
        host[:] = dpnp.asnumpy(x.sum(axis=0))
        return host

    def added(a, b):
        a += b
        return a

    for fn in (on_device, on_host, lambda x: x[0] * 0 + x.sum(axis=0)):
        assert dpmem.map_chunks(fn, data, reduce=added, rows=90).tolist() == data.sum(axis=0).tolist()
