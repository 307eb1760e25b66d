"""`dpmem.map_chunks`: a function over data that is larger than the device, from the first chunk to the last.

A chunk counts as done when its rows are in the output, its part is in the reduction, and the resume file says so, in
this order. Whatever happens in between, the chunk is done again from the source: it is never counted twice or left out.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy

from dpmem import (
    _chunks,
    _combine,
    _fit,
    _form,
    _journal,
    _native,
    _outputs,
    _overlap,
    _plan,
    _pool,
    _progress,
    _runtime,
    _sources,
    _step,
)
from dpmem._fingerprint import fingerprint_of


def map_chunks(
    fn: Callable[..., Any],
    source: Any,
    *,
    out: Any = None,
    reduce: Any = None,
    progress: bool | Callable[[int, int], object] | None = None,
    resume: Any = None,
    plan: _plan.ChunkPlan | None = None,
    rows: int | None = None,
    device: Any = None,
    budget: float = 0.6,
    in_flight: int = 2,
    axis: int = 0,
) -> Any:
    """Apply `fn` to data that is larger than the device, chunk by chunk.

    Chunks are read ahead while `fn` computes. If `fn` runs out of memory the chunk is halved and done again, which is
    said once on standard error. The caching pool is on meanwhile.

    Parameters
    ----------
    fn
        Takes a chunk as a dpnp array (as many as `source` is a tuple of) and returns an array or a number. It is called
        on a few small parts of the data beforehand, and again on a part whose first try ran out of memory. It may
        change the chunk, which is a copy, and may return it; it must not keep it.
    source
        As in `chunks`.
    out
        Where the rows of the results go: the path of a `.npy` file, or a NumPy array, a memmap, or anything else with
        `shape` that takes slices. `fn` must give as many rows as the chunk has. A file gets its name when it is whole;
        until then it is `NAME.npy.partial`.
    reduce
        What to make of all results: `"sum"`, `"mean"`, `"min"`, `"max"` (as in NumPy, NaN included; along the rows if
        the results have rows), `"concatenate"`, or an associative function of two results. Neighbours are combined
        pairwise, so that float sums are accurate.
    progress
        True for a bar of tqdm's, False for none, a function that is called with the rows done and those there are;
        None for a bar on a terminal if tqdm is installed.
    resume
        The path of a resume file, or True for `out` with `.resume` added. If the job is interrupted, by Ctrl-C or by a
        crash, the same call goes on after the last finished chunk. The file is removed at the end.
    plan
        What `plan_chunks` answered, to save trying `fn` out again; `budget` and `in_flight` are the plan's then.
    rows
        Rows of a chunk, in place of the planned ones.
    device, budget, in_flight, axis
        As in `plan_chunks`.

    Returns
    -------
    object
        The reduction's result as a NumPy array or scalar; without `reduce`, `out`, or for a file a memmap of it. With
        neither, the results are joined into a new NumPy array.

    Raises
    ------
    MemoryError
        Not even one row fits.
    RuntimeError, dpctl.SyclDeviceCreationError
        There is no SYCL device, or none of that name.
    ValueError, TypeError
        The results can't be written or reduced as asked, or a resume file belongs to another job.
    OSError
        Reading or writing failed; the error names the file and the offset.

    An exception of `fn` passes, with a note of the chunk where notes exist (Python 3.11 on).
    """
    opened = _sources.open_source(source, axis)
    rows = _checked_rows(rows)
    _check_plan(plan, opened)
    reduction = _combine.reduction(reduce, opened.axis)
    path = _outputs.path_of(out)
    _overlap.check(source, out, once=reduction is None and not resume)
    beside = _resume_path(resume, path)
    if beside is not None and out is None and reduction is None:
        raise ValueError("resume= takes an out= or a reduce= that outlives the process")
    if len(opened) == 0:
        return _of_nothing(fn, opened, out, reduction, _plan.queue_of(device))
    queue = _queue_for(device, plan)
    with _pool.borrowed() as pool:
        made = plan
        if made is None or made._form is None:
            writes = out is not None or reduction is None
            made = _plan.make_plan(
                fn, opened, reduction, queue, pool, budget=budget, in_flight=in_flight, writes=writes
            )
        job = _Job(fn, opened, reduction, queue, pool, made, out)
        return job.run(rows, beside, progress)


def _queue_for(device: Any, plan: _plan.ChunkPlan | None) -> Any:
    """The queue to work on: of the device that was named, else of the one that was planned for."""
    queue = _plan.queue_of(device)
    name = _runtime.root_filter(queue.sycl_device)
    if plan is None or plan.device == name:
        return queue
    if device is None:
        return _plan.queue_of(plan.device)
    raise ValueError(f"the plan is for {plan.device}, not for {name}")


def _checked_rows(rows: Any) -> int | None:
    if rows is None:
        return None
    number = _sources.whole_number("rows", rows)
    if number < 1:
        raise ValueError(f"expected a number of rows, at least 1, got {rows!r}")
    return number


def _check_plan(plan: Any, source: Any) -> None:
    if plan is None:
        return
    if not isinstance(plan, _plan.ChunkPlan):
        raise TypeError(f"expected a plan of plan_chunks, got {type(plan).__name__}")
    if (plan.axis, plan.row_bytes) != (source.axis, source.row_nbytes):
        raise ValueError(
            f"the plan is for rows of {plan.row_bytes} bytes along axis {plan.axis}, "
            f"the source has rows of {source.row_nbytes} along axis {source.axis}"
        )


def _resume_path(resume: Any, out: str | None) -> str | None:
    if resume is None or resume is False:
        return None
    if resume is True:
        if out is None:
            raise ValueError("expected the path of a resume file: resume=True takes an out= that is a path")
        return out + ".resume"
    if not isinstance(resume, (str, os.PathLike)):
        raise TypeError(f"expected the path of a resume file or True, got {resume!r}")
    return os.fsdecode(resume)


class _Job:
    """One call of `map_chunks`."""

    def __init__(
        self,
        fn: Callable[..., Any],
        source: Any,
        reduction: _combine.Reduction | None,
        queue: Any,
        pool: _pool.borrowed,
        plan: _plan.ChunkPlan,
        out: Any,
    ) -> None:
        if plan._form is None:
            raise ValueError("expected a plan that knows the function's results")
        self._form: _form.Form = plan._form
        self._fn, self._source, self._queue, self._pool, self._plan = fn, source, queue, pool, plan
        self._total, self._done, self._rows, self._said = len(source), 0, plan.rows, False
        self._chunk, self._previous = 0, 0
        if out is None and reduction is None:
            # Without anything else to do with them, results are joined.
            if self._form.axis is None:
                raise ValueError(
                    f"the function's result has no rows (shape {self._form.shape}, whatever the chunk): say what to do "
                    'with the results of all chunks: reduce="sum", "concatenate", …'
                )
            if self._form.kind == "rows":
                out = numpy.empty(self._form.whole(self._total), self._form.dtype)
            else:
                reduction = _combine.Concatenate(source.axis)
        self._reduction = reduction
        self._output = None if out is None else _outputs.output(out, self._form, self._total)
        self._step = _step.Step(fn, reduction, self._output is not None, source.axis)
        self._step.form = self._form
        self._journal: _journal.Journal | None = None

    def run(self, rows: int | None, resume: str | None, progress: bool | Callable[[int, int], object] | None) -> Any:
        """All chunks."""
        self._rows = min(rows or self._plan.rows, self._total)
        try:
            self._open(resume, chosen=rows is not None)
        except BaseException:
            # A resume file that has been begun tells of its output, even if there is nothing in it.
            keep = self._done > 0 or (self._journal is not None and self._journal.is_open())
            if self._journal is not None:
                self._journal.close()
            if self._output is not None:
                self._output.abandon(keep)
            raise
        bar = None
        try:
            bar = _progress.Progress(progress, self._done, self._total)
            while self._done < self._total:
                shortage = self._pass(bar)
                if shortage is not None:
                    self._halve(shortage)
            return self._finish()
        except BaseException as error:
            self._leave(error)
            raise
        finally:
            if bar is not None:
                bar.close()

    def _open(self, resume: str | None, chosen: bool) -> None:
        """Output and resume file, new or as an interrupted job has left them."""
        found = None
        if resume is not None:
            self._journal = _journal.Journal(resume, self._facts())
            found = self._journal.read()
            lost = found is not None and self._output is not None and not self._output.still_has(found.done, found.mark)
            if lost:
                raise self._journal.refusal("tells of rows that out= doesn't hold any more, as if it were made anew")
        if found is not None:
            self._go_on(found, chosen)
        if self._output is not None and not (self._done == self._total and self._output.is_whole()):
            token = os.urandom(_outputs.TOKEN_BYTES) if self._journal is None else self._journal.token
            self._output.open(token, resumed=found is not None, complete=self._done == self._total)
        if self._journal is not None:
            self._journal.begin(found, self._rows)

    def _facts(self) -> dict[str, Any]:
        return {
            "source": self._source.fingerprint(),
            "rows": self._total,
            "function": fingerprint_of(self._fn),
            "reduce": None if self._reduction is None else self._reduction.name,
            "out": None if self._output is None else self._output.describe(),
        }

    def _go_on(self, found: _journal.Progress, chosen: bool) -> None:
        self._done = found.done
        if found.rows is not None and not chosen and found.rows <= self._plan.largest_rows:
            # The same chunks give the same roundings.
            self._rows = found.rows
        self._chunk = -(-self._done // self._rows)
        if self._reduction is not None:
            device = self._reduction.on_device
            self._reduction.restore([(level, self._received(part, device)) for level, part in found.state])
            for part in found.parts:
                self._reduction.push(None if part is None else self._received(part, device))
                self._reduction.merge()

    def _received(self, part: Any, device: bool) -> Any:
        if not device:
            return part
        # See `_kept`. What was read can't be written to, and the user's function may want to.
        return _combine.plain(numpy.array(part[0])) if len(part) > 1 else _step.send(part[0], self._queue)

    def _pass(self, bar: _progress.Progress) -> str | None:
        """Chunks of the present size until the end, or until memory runs out: then the error's text."""
        start = None
        try:
            chunks = _chunks.chunks(
                self._source, self._rows, queue=self._queue, in_flight=self._plan.in_flight, start=self._done
            )
            with closing(chunks):
                for _, taken in chunks:
                    start = self._done
                    parts = taken if isinstance(taken, tuple) else (taken,)
                    rows = int(parts[0].shape[self._source.axis])
                    self._one(parts, rows)
                    del taken, parts
                    start = None
                    bar.advance(rows)
                    self._merge()
        except Exception as error:
            # What is counted but not recorded can't be gone on from.
            if _fit.is_shortage(error) and self._rows > 1 and start in (None, self._done):
                return str(error).partition("\n")[0] or type(error).__name__
            if start is not None:
                stop = min(start + self._rows, self._total)
                _plan.add_note(error, f"in chunk {self._chunk}, rows {start} to {stop} of {self._total}")
            raise
        return None

    def _one(self, parts: tuple[Any, ...], rows: int) -> None:
        """One chunk, from the device to where its result belongs."""
        if rows != self._previous and self._previous and self._pool.owns_cache:
            # What is cached has the sizes of other chunks, and would lie idle beside those of this one.
            _native.pool_empty()
        self._previous = rows
        result, reduced = self._step(parts)
        start, stop = self._done, self._done + rows
        near = self._output is not None and self._output.takes(result)
        fetched = None if self._output is None or near else _step.fetch(result)
        part: Any = None
        if self._reduction is not None:
            part = reduced if self._reduction.on_device else self._reduction.part(reduced, _step.fetch, rows)
        kept, mark = None if self._journal is None else self._kept(part), None
        _step.settled(result, self._queue)
        if self._output is not None:
            # Nothing runs out of memory after this: a source that is written over can't be read again.
            self._output.write(start, stop, result if near else fetched)
            mark = None if self._journal is None or near else self._output.mark(stop, fetched)
            if near:
                _step.settled(result, self._queue)
        if self._reduction is not None:
            self._reduction.push(part)
        self._done = stop
        self._chunk += 1
        if self._journal is not None:
            self._journal.record(stop, kept, mark)

    def _merge(self) -> None:
        """What can wait until a chunk is done, and may run out of memory without harm to it."""
        if self._reduction is not None:
            self._reduction.merge()
        if self._journal is not None and self._journal.is_due():
            self._sync(self._journal)

    def _kept(self, part: Any) -> _combine.Part | None:
        """A part as the resume file can hold it."""
        if self._reduction is None or part is None:
            return None
        if not self._reduction.on_device:
            kept: _combine.Part = part
            return kept
        value = _combine.as_array(_step.fetch(part))
        if value is None:
            raise TypeError(f"resume= takes results that are arrays or numbers, got {type(part).__name__}")
        # A second array says that it was on the host.
        return [value] if _step.is_on_device(part) else [value, numpy.empty(0)]

    def _sync(self, journal: _journal.Journal) -> None:
        if self._output is not None:
            self._output.sync()
        state = [] if self._reduction is None else self._reduction.state()
        journal.synced(self._done, [(level, self._kept(part) or []) for level, part in state], self._rows)

    def _halve(self, shortage: str) -> None:
        _fit.drained(self._queue)
        if self._pool.owns_cache:
            _native.pool_empty()
        before, self._rows = self._rows, (self._rows + 1) // 2
        self._plan = dataclasses.replace(self._plan, rows=self._rows, largest_rows=self._rows)
        if not self._said and sys.stderr is not None:
            self._said = True
            count = _native.human_count
            sys.stderr.write(
                f"dpmem: a chunk of {count(before)} rows ran out of memory ({shortage}); from there on chunks have "
                f"{count(self._rows)} rows, halved again if need be\n"
            )

    def _finish(self) -> Any:
        if self._journal is not None:
            self._sync(self._journal)
        written = self._output.finish() if self._output is not None else None
        answer = written if self._reduction is None else _step.brought(self._reduction.finish())
        if self._journal is not None:
            self._journal.finish()
        return answer

    def _leave(self, error: BaseException) -> None:
        """Leave an output behind that is consistent: one to go on with, or none."""
        resumable = self._journal is not None
        if self._journal is not None:
            self._journal.close()
            _plan.add_note(
                error, f"{self._done} of {self._total} rows are done; the same call with resume= goes on from there"
            )
        if self._output is not None:
            self._output.abandon(keep=resumable)


def _of_nothing(fn: Callable[..., Any], source: Any, out: Any, reduction: Any, queue: Any) -> Any:
    """A source without rows: what `fn` makes of an empty chunk."""
    read = source.read(0, 0)
    arrays = read if isinstance(read, tuple) else (read,)
    result = fn(*(_step.send(array, queue) for array in arrays))
    shape = _form.shape_of(result)
    places = [place for place, extent in enumerate(shape) if extent == 0]
    axis = source.axis if source.axis in places or not places else places[0]
    form = _form.Form("rows" if places else "fixed", axis if places else None, shape, _form.dtype_of(result))
    if out is not None:
        output = _outputs.output(out, form, 0)
        output.open(os.urandom(_outputs.TOKEN_BYTES))
        try:
            written = output.finish()
        except BaseException:
            output.abandon(keep=False)
            raise
        if reduction is None:
            return written
    if reduction is None:
        return numpy.array(_step.fetch(result))
    if not reduction.on_device:
        reduction.push(reduction.part(reduction.reduce(result, form), _step.fetch, 0))
        return reduction.finish()
    return _step.brought(result)
