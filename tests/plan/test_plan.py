"""`dpmem.plan_chunks`: what it measures, what it chooses, and why."""

import json
from pathlib import Path

import corpus
import dpnp
import numpy as np
import pytest

import dpmem
from dpmem import _fit, _native, _pool

MIB = 1 << 20
#: A limit can only be set where the process has a queue.
QUEUE = dpnp.empty(0).sycl_queue


@pytest.fixture(autouse=True)
def pool_is_off_again():
    yield
    assert _native.pool_status()[:2] == (False, False)


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(5).standard_normal((100_000, 8))


def test_the_peak_of_a_known_function_is_what_its_arrays_take(data):
    plan = dpmem.plan_chunks(lambda x: x * x, data)
    exact = 64 * (plan.in_flight + 1)
    assert exact <= plan.bytes_per_row <= exact * _fit.MARGIN * 1.02
    assert plan.peak_bytes >= plan.rows * exact
    assert (plan.total_rows, plan.row_bytes, plan.linear, plan.recorded) == (100_000, 64, True, True)
    assert plan.chunks == -(-plan.total_rows // plan.rows) >= 8
    assert plan.budget_bytes <= plan.free_bytes * 0.6
    assert dpmem.plan_chunks(lambda x: x * x, data, in_flight=5).bytes_per_row >= 64 * 6


def test_it_prints_its_reasons(data):
    plan = dpmem.plan_chunks(lambda x: x * x, data)
    text = str(plan)
    for part in ("chunks of", "in flight", "free", "would fit", plan.device, plan.free_source):
        assert part in text
    assert plan._repr_html_().startswith("<pre>")
    assert json.loads(json.dumps(plan.as_json()))["rows"] == plan.rows
    assert plan.reasons


def test_nothing_of_the_users_changes(data):
    before = data.copy()

    def spoiling(x):
        x[:] = 7
        return x

    dpmem.start()
    try:
        kept = dpnp.ones(1000)
        gone = dpnp.ones(10_000_000)
        dpmem.synchronize()
        del gone
        dpmem.synchronize()
        in_use, peak = dpmem.memory_allocated(), dpmem.max_memory_allocated()
        assert peak >= in_use + 80_000_000
        dpmem.plan_chunks(spoiling, data)
        dpmem.synchronize()
        assert dpmem.memory_allocated() == in_use
        assert dpmem.max_memory_allocated() == peak
        assert dpmem.is_tracking()
        assert float(kept.sum()) == 1000
    finally:
        dpmem.stop()
    assert np.array_equal(data, before)


def test_a_limit_of_dpmems_counts(data):
    free = dpmem.plan_chunks(lambda x: x + 1, data)
    try:
        dpmem.set_memory_limit(3 * MIB)
        limited = dpmem.plan_chunks(lambda x: x + 1, data, budget=1)
        assert limited.limit_bytes == 3 * MIB
        assert limited.peak_bytes <= 3 * MIB
        assert limited.largest_rows < free.largest_rows
        assert any("limit of 3 MiB" in reason for reason in limited.reasons)
        got = dpmem.map_chunks(lambda x: x + 1, data, plan=limited)
        assert np.array_equal(got, data + 1)
    finally:
        dpmem.disable_pool()
        dpmem.stop()


def test_one_row_that_does_not_fit_is_refused_with_numbers():
    wide = np.ones((4, 1 << 20))
    dpmem.set_memory_limit(60 * MIB)
    try:
        with pytest.raises(MemoryError, match=r"a row has 8 MiB.*<lambda> with one row.*may be used.*in_flight=1"):
            dpmem.plan_chunks(lambda x: x * 2 + x * 3 + x * 4, wide)
        dpmem.set_memory_limit(20 * MIB)
        with pytest.raises(MemoryError, match=r"its input alone with 2 in flight takes 16 MiB, 12 MiB may be used"):
            dpmem.plan_chunks(lambda x: x * 2, wide)
    finally:
        dpmem.disable_pool()
        dpmem.stop()


def test_one_row_whose_temporaries_take_more_than_the_budget_is_refused():
    wide = np.ones((4, 1 << 20))
    free = dpmem.plan_chunks(lambda x: x, wide).free_bytes
    with pytest.raises(MemoryError, match=r"<lambda> with one row.*may be used"):
        dpmem.plan_chunks(lambda x: x * 2 + x * 3 + x * 4, wide, budget=20 * MIB / free)


def test_functions_that_take_more_than_a_straight_line_say_so():
    rows = np.random.default_rng(1).standard_normal((20_000, 2))

    def pairwise(x):
        return ((x[:, :1] - x[:, 0]) ** 2).sum()

    dpmem.set_memory_limit("256MiB")
    try:
        plan = dpmem.plan_chunks(pairwise, rows, reduce="sum")
        assert not plan.linear
        assert any("does not grow evenly" in reason for reason in plan.reasons)
        needed = 2 * 8 * plan.rows**2
        assert needed <= plan.peak_bytes <= 256 * MIB * 0.6
        with dpmem.track("job"):
            dpmem.reset_peak_memory_stats()
            before = dpmem.memory_allocated()
            dpmem.map_chunks(pairwise, rows, plan=plan, reduce="sum")
            assert dpmem.max_memory_allocated() - before <= plan.peak_bytes
    finally:
        dpmem.disable_pool()
        dpmem.stop()


def test_a_resident_operand_and_a_fixed_result_cost_no_more_for_more_rows(data):
    weights = dpnp.ones((8, 8))

    def product(x):
        return (x @ weights).sum(axis=0)

    plan = dpmem.plan_chunks(product, data, reduce="sum")
    assert plan.linear
    assert plan.bytes_per_row <= 64 * 3 * _fit.MARGIN * 1.02


def test_a_function_that_frees_as_it_goes_does_not_make_chunks_tiny():
    rows = np.random.default_rng(1).standard_normal((200_000, 8))

    def loop(x):
        y = x + 0
        for _ in range(40):
            y = y * 0.5
            y.sycl_queue.wait()
        return y

    dpmem.set_memory_limit("24MiB")
    try:
        plan = dpmem.plan_chunks(loop, rows)
        assert any("far more than it holds" in reason for reason in plan.reasons)
        assert plan.rows * 64 > 256 << 10
    finally:
        dpmem.disable_pool()
        dpmem.stop()


def test_a_reduction_that_joins_on_the_device_is_planned_for_all_of_it(data):
    def joined(a, b):
        return dpnp.concatenate([a, b])

    plan = dpmem.plan_chunks(lambda x: x * 2, data, reduce=joined)
    assert plan.peak_bytes >= 2 * data.nbytes
    assert any("something larger of two" in reason for reason in plan.reasons)
    dpmem.start()
    try:
        dpmem.synchronize()
        before = dpmem.memory_allocated()
        dpmem.reset_peak_memory_stats()
        assert np.array_equal(dpmem.map_chunks(lambda x: x * 2, data, reduce=joined, plan=plan), data * 2)
        assert dpmem.max_memory_allocated() - before <= plan.peak_bytes
    finally:
        dpmem.stop()
    small = dpmem.plan_chunks(lambda x: x.sum(axis=0), data, reduce=dpnp.add)
    assert small.peak_bytes < data.nbytes


def test_where_nothing_can_be_recorded_the_plan_is_careful(data, monkeypatch):
    def refused():
        raise RuntimeError("not this runtime")

    monkeypatch.setattr(_pool, "_begin", refused)
    plan = dpmem.plan_chunks(lambda x: x + 1, data)
    assert not plan.recorded
    assert plan.bytes_per_row >= 64 * (_fit.UNKNOWN_FACTOR + 2)
    assert any("not this runtime" in reason and "16 times" in reason for reason in plan.reasons)
    assert np.array_equal(dpmem.map_chunks(lambda x: x + 1, data), data + 1)


@pytest.mark.parametrize(
    ("points", "linear", "at", "least", "most"),
    [
        ([(100, 1000), (400, 4000)], True, 4000, 40_000, 50_000),
        ([(100, 50_000), (400, 50_000)], True, 100_000, 50_000, 60_100),
        ([(100, 100 * 100 * 8), (400, 400 * 400 * 8), (800, 800 * 800 * 8)], False, 1600, 1600 * 1600 * 8, 30e6),
        ([(100, 900_000), (400, 100_000)], False, 400, 900_000, 10e6),
    ],
)
def test_the_fit(points, linear, at, least, most):
    probes = [_fit.Probe(rows, rows * 8, need, need, need, 0.001, 0) for rows, need in points]
    need = _fit.Need(probes)
    assert need.is_linear == linear
    assert least <= need.bytes_for(at) <= most
    assert need.bytes_for(at) <= need.bytes_for(at + 100)


def test_neither_power_nor_line_bounds_how_far_it_is_trusted():
    points = ((100, 50_000), (400, 400_000), (800, 9_000_000))
    probes = [_fit.Probe(n, n * 8, need, need, need, 0.001, 0) for n, need in points]
    assert _fit.Need(probes).most_rows == 4 * 800


@pytest.mark.parametrize("name", ["square_sum", "transcendental", "view", "sort", "masked", "gram", "own_reduction"])
def test_what_is_used_is_at_most_what_was_planned(name):
    """A part of the corpus that `tests/soak` goes through on all devices and sizes."""
    found = corpus.run(name, "", corpus.data(6, corpus.CASES[name].dtype), 0.6)
    assert found["wrong"] is None
    assert found["used_bytes"] <= found["peak_bytes"]
    assert found["reserved_bytes"] <= found["peak_bytes"]
    assert found["chunks"] >= 8


@pytest.mark.parametrize("machine", ["workstation", "opencl_only"])
def test_on_a_device_with_memory_of_its_own(machine, request):
    simulated = request.getfixturevalue(machine).having("name=Small;mem=1GiB")
    names = ["square_sum", "horner", "normalised", "masked", "own_reduction"]
    ended = simulated.run(Path(corpus.__file__), "", "6", "0.004", *names)
    assert ended.exit_code == 0, ended.stderr
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [row["name"] for row in found] == names
    for row in found:
        assert row["wrong"] is None, row
        assert row["used_bytes"] <= row["reserved_bytes"] <= row["peak_bytes"] <= (1 << 30) * 0.004, row
    assert any(row["limited_by_memory"] for row in found)
