"""``dpmem run``: one program, one recording, one report.

The order is CPython's own, with the report put in: the main module ends and its exception is printed; the
interpreter waits for threads; **the report is taken**, in the ``atexit`` handler that runs first because it
was registered last; the program's ``atexit`` handlers run; the interpreter goes; native code writes the
summary. A fault of ours never stops the program.
"""

from __future__ import annotations

import atexit
import os
import sys
import time

from dpmem import _icd, _native, _out_of_memory, _program, _recording, _spawn, _surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Options:
    """What was asked for, as far as a spawned child needs it too."""

    def __init__(
        self,
        *,
        json: str | None,
        stack_depth: int,
        summary: bool,
        fail_on: list[str],
        pool: bool = False,
        limit: str | None = None,
    ) -> None:
        self.json = json
        self.stack_depth = stack_depth
        self.summary = summary
        self.fail_on = fail_on
        self.pool = pool
        self.limit = limit
        self.kind = "code"
        self.target = ""
        self.arguments: list[str] = []

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Options:
        """Take the options over from the parsed command line."""
        options = cls(
            json=answer["json"],
            stack_depth=answer["stack_depth"],
            summary=answer["summary"],
            fail_on=answer["fail_on"],
            pool=answer["pool"],
            limit=answer["limit"],
        )
        options.kind, options.target, options.arguments = (
            answer["kind"],
            answer["target"],
            answer["arguments"],
        )
        return options

    @property
    def command(self) -> list[str]:
        """The program as it would follow ``python`` on a command line."""
        option = {"script": [], "module": ["-m"], "code": ["-c"]}[self.kind]
        # Words need not be Unicode; a report is.
        return [
            os.fsencode(word).decode("utf-8", "backslashreplace") for word in (*option, self.target, *self.arguments)
        ]


def begin(answer: dict[str, Any]) -> Run | int:
    """Make everything ready and start recording: a run whose program is to be run, or an exit code."""
    options = Options.of(answer)
    problem = _take_variables(options)
    if problem is not None:
        _say(problem)
        return 2
    if options.json is not None and options.json != "-":
        options.json = os.path.abspath(options.json)
        problem = _native.cli_report_problem(options.json)
        if problem is not None:
            _say(f"cannot {problem}")
            return 2
    try:
        program = _program.prepare(options.kind, options.target, options.arguments)
    except _program.CannotStart as reason:
        _say(str(reason))
        return reason.code
    run = Run(options, program)
    note = _icd.use_pip_runtime()
    if note is not None:
        run.said.append(note)
        _say(note)
    warning = _surroundings.selector_warning()
    if warning is not None:
        run.said.append(warning)
        _say(warning)
    _spawn.watch(
        stack_depth=options.stack_depth,
        json=None if options.json == "-" else options.json,
        pool=options.pool,
        limit=options.limit,
    )
    run.arm()
    return run


def _take_variables(options: Options) -> str | None:
    """Read the variables that stand for options where these were not given; what is wrong with them, if anything is."""
    word = os.environ.get("DPMEM_POOL", "")
    if word not in ("", "0", "1"):
        return f"expected DPMEM_POOL to be 1 or 0, got `{word}`"
    options.pool = options.pool or word == "1"
    limit = os.environ.get("DPMEM_LIMIT", "")
    if options.limit is None and limit:
        try:
            _native.size_parse(limit)
        except ValueError as error:
            return f"cannot understand DPMEM_LIMIT: {error}"
        options.limit = limit
    return None


class Run:
    """The recording of one program in one process."""

    def __init__(self, options: Options, program: _program.Program) -> None:
        self.options = options
        self.program = program
        #: Facts for the report: those that stderr has been told already, and others.
        self.said: list[str] = []
        self.notes: list[str] = []
        self._pid = os.getpid()
        self._exit_code = 0
        #: Before that there is nothing to report: whoever is terminated so early dies as it would without dpmem.
        self._began = False
        self._failure: dict[str, Any] | None = None
        self._started = time.time()
        self._started_ticks = time.monotonic()

    def arm(self) -> None:
        """Start recording, and see to it that every way out leads past the report."""
        _native.process_arm(self._terminated, self._exiting)
        try:
            _recording.begin(stack_depth=self.options.stack_depth, pool=self.options.pool, limit=self.options.limit)
            _out_of_memory.install()
        except Exception as error:
            _say(f"recording could not start, the program runs without: {_described(error)}")
        self._began = True

    def ended(self, end: _native.ProgramEnd) -> object:
        """Note how the main module ended; the result is for ``sys.exit``."""
        if end.exit_code == 1 and not end.by_system_exit and os.getpid() == self._pid:
            # What it died of is printed and kept by the interpreter.
            try:
                self._failure = _surroundings.failure()
            except Exception as error:
                self.notes.append(f"why the program failed could not be looked into: {_described(error)}")
        self._explain_shortage(end)
        self.program.tidy(end)
        del self.program  # it refers to the program's namespace, which must go when the interpreter goes
        if end.signal:
            _native.process_die_at_exit(end.signal)
        if os.getpid() == self._pid:
            self._exit_code = end.exit_code
            atexit.register(self._report_at_exit)
        return end.status

    def _explain_shortage(self, end: _native.ProgramEnd) -> None:
        """Under the traceback of an exception that dpnp's C++ raised itself, say what the matter was."""
        if end.exit_code == 0 or end.by_system_exit or os.getpid() != self._pid:
            return
        text = _out_of_memory.text_for(getattr(sys, "last_value", None))
        if text is not None:
            _native.process_write(2, f"\ndpmem: {text}\n")

    def _report_at_exit(self) -> None:
        if _native.process_claim():
            signal = _native.process_terminated_by()
            if signal:
                self._note_termination(signal)
            self._report(-signal if signal else self._exit_code)

    def _terminated(self, signal: int) -> None:
        if _native.process_claim():
            self._note_termination(signal)
            self._report(-signal)

    def _exiting(self, status: int) -> None:
        if _native.process_claim():
            self.notes.append("the program left through os._exit: its atexit handlers did not run")
            self._report(status & 0xFF)

    def _note_termination(self, signal: int) -> None:
        name = {1: "SIGHUP", 15: "SIGTERM"}.get(signal, f"signal {signal}")
        self.notes.append(f"the program was terminated by {name}: this is how things stood at that moment")

    def _report(self, exit_code: int) -> None:
        summary, data, failure = "", "", None
        present: list[str] = []
        unjudged: str | None = None
        if not self._began:
            _native.process_settle("", "", exit_instead=None, program_succeeded=exit_code == 0)
            return
        try:
            finished = _recording.finish(
                command=self.options.command,
                exit_code=exit_code,
                started=_utc(self._started),
                duration_s=time.monotonic() - self._started_ticks,
                said=self.said,
                notes=self.notes,
                failure=self._failure,
            )
            unjudged = finished.unjudged if self.options.fail_on else None
            present = sorted(set(self.options.fail_on).intersection(finished.findings))
            if self.options.json == "-":
                data = finished.json + "\n"
            elif self.options.json is not None:
                problem = _native.cli_write_report(self.options.json, finished.json)
                failure = problem and f"cannot {problem}"
            if self.options.summary:
                width, colour = _native.process_terminal(2)
                summary = finished.render(width, colour)
            elif not finished.complete:
                summary = f"dpmem: the recording is incomplete: {finished.reason}"
        except BaseException as error:
            failure = f"no report: {_described(error)}"
        if summary and not summary.endswith("\n"):
            summary += "\n"
        if failure:
            summary += f"dpmem: {failure}\n"
        exit_instead = None
        if exit_code == 0 and failure:
            exit_instead = 2
        elif exit_code == 0 and present:
            exit_instead = 1
            summary += f"dpmem: exit code 1 because of {', '.join(present)} (--fail-on)\n"
        elif exit_code == 0 and unjudged:
            exit_instead = 2
            summary += f"dpmem: exit code 2: findings could not all be judged (--fail-on): {unjudged}\n"
        _native.process_settle(summary, data, exit_instead=exit_instead, program_succeeded=exit_code == 0)


def _utc(seconds: float) -> Any:
    # The C module: `datetime` itself could by now be the program's own file of that name.
    import _datetime  # type: ignore[import-not-found]

    return _datetime.datetime.fromtimestamp(seconds, _datetime.timezone.utc)


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _say(text: str) -> None:
    if sys.stderr is not None:
        _native.process_write(2, f"dpmem: {text}\n")
