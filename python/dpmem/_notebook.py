"""`%load_ext dpmem`: the magics `%dpmem` and `%%dpmem`.

Loading registers two names and one rewriting of text. Recording, and listening to when cells begin, start with the
first use of a magic; so does everything that this module needs for it.

A measured cell runs as it would without: `%%dpmem` becomes a statement in the cell's first line that begins the
measurement, and the cell's end ends it. So its last value, `await`, exceptions and line numbers are the cell's own.
"""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HELP = """\
%dpmem [--all]     what is in use now, by variable and by cell; --all: every row
%dpmem clear       let go of shown results (Out, _, __, ___) and of the last traceback; says how much came back
%dpmem on          record from now on and show nothing
%dpmem off         stop recording

%%dpmem            at the top of a cell: what the cell added, its peak, what it left and who holds that, findings
%dpmem cell        the same, from this line of the cell on

Recording begins with the first of these."""

#: A cell that is to be measured.
_MEASURED = re.compile(r"%%dpmem(?![\w?])")
#: What is written into it.
_BEGIN = re.compile(r"(; )?get_ipython\(\)\.find_line_magic\('dpmem'\)\(('[^'\n]*'|\"[^\"\n]*\")\)")

_sessions: dict[int, Session] = {}


def load(shell: Any) -> None:
    """Make the magics known to a shell."""
    unload(shell)
    session = _sessions[id(shell)] = Session(shell)
    shell.register_magic_function(session.line_magic, "line", "dpmem")
    shell.register_magic_function(session.cell_magic, "cell", "dpmem")
    shell.input_transformers_cleanup.append(rewritten)


def unload(shell: Any) -> None:
    """Take the magics back, and end a recording that one of them began."""
    session = _sessions.pop(id(shell), None)
    if session is None:
        return
    session.close()
    if rewritten in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(rewritten)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("dpmem", None)


def rewritten(lines: list[str]) -> list[str]:
    """A cell's lines, with a statement in the place of `%%dpmem`; other cells as they are. No line moves."""
    if not lines or not _MEASURED.match(lines[0]):
        return lines
    words = " ".join(["cell", *lines[0].split()[1:]])
    # Not as IPython writes magics: cells with such a call may be left out of its history.
    begin = f"get_ipython().find_line_magic('dpmem')({words!r})"
    rest = lines[1:]
    first = next((number for number, line in enumerate(rest) if line.strip()), len(rest))
    if first < len(rest) and rest[first].startswith("%%"):
        from IPython.core.inputtransformer2 import cell_magic

        rest = [*rest[:first], *cell_magic(rest[first:])]
    future = _end_of_futures(rest)
    if future is None:
        return [f"{begin}\n", *rest]
    number, column = future
    line = rest[number]
    return ["\n", *rest[:number], f"{line[:column]}; {begin}{line[column:]}", *rest[number + 1 :]]


def as_typed(line: str) -> str:
    """A line of a measured cell without what `rewritten` has put there."""
    return _BEGIN.sub("", line)


def _end_of_futures(lines: list[str]) -> tuple[int, int] | None:
    """Where the last import from `__future__` ends, before which only such and a docstring may come; None without."""
    import tokenize

    end, statement = None, []
    passed = (tokenize.COMMENT, tokenize.NL)
    try:
        for token in tokenize.generate_tokens(iter(lines).__next__):
            if token.type != tokenize.NEWLINE and token.string != ";":
                statement += [] if token.type in passed else [token]
                continue
            if [each.string for each in statement[:2]] == ["from", "__future__"]:
                end = (statement[-1].end[0] - 1, statement[-1].end[1])
            elif any(each.type != tokenize.STRING for each in statement):
                break
            statement = []
    except (tokenize.TokenError, SyntaxError):
        pass  # What follows is no Python, or none yet.
    return end


# The question whether a cell is complete is asked of the cell as it is typed: a cell magic ends with an empty line.
rewritten.has_side_effects = True  # type: ignore[attr-defined]


class Session:
    """What the magics of one shell have under way."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._listening = False
        #: The recording that a magic began, and in which cell it did.
        self._recording: int | None = None
        self._cell: int | None = None
        self._measurement: Any = None

    def line_magic(self, line: str) -> None:
        """Show what memory of devices is in use; `%dpmem --help` tells more."""
        words = line.split()
        if words[-1:] in (["--help"], ["-h"], ["help"]):
            print(_HELP)
        elif words in ([], ["--all"]):
            self._show(everything=bool(words))
        elif words == ["clear"]:
            self._clear()
        elif words == ["cell"]:
            self._measure()
        elif words == ["on"]:
            self._record_or_refuse()
            print("dpmem is recording.")
        elif words == ["off"]:
            self._stop()
        else:
            raise _usage_error(
                f"expected nothing, --all, clear, cell, on, off or --help after %dpmem, got `{' '.join(words)}`"
                if words[:1] != ["cell"]
                else f"expected nothing after %%dpmem, got `{' '.join(words[1:])}`"
            )

    def cell_magic(self, line: str, cell: str) -> None:
        """Show what a cell does to the memory of devices; `%dpmem --help` tells more."""
        if line.split() in (["--help"], ["-h"], ["help"]):
            print(_HELP)
            return
        # A cell that is run as a cell has been rewritten; this one has been asked for by name.
        self._shell.run_cell(f"%%dpmem {line}\n{cell}", store_history=False).raise_error()

    def close(self) -> None:
        """Stop listening and recording."""
        if self._measurement is not None:
            self._measurement.give_up()
            self._measurement = None
        if self._listening:
            self._shell.events.unregister("pre_run_cell", self._note_run)
            self._listening = False
        if self._is_ours():
            from dpmem import _tracking

            _tracking.stop()

    def _show(self, *, everything: bool) -> None:
        self._record_or_refuse()
        from dpmem import _notebook_memory, _page

        _display(
            _notebook_memory.in_use(self._cell if self._is_ours() else None, None if everything else _page.ROWS_MAX)
        )

    def _clear(self) -> None:
        from dpmem import _leftovers, _native, _notebook_memory, _page, _recording, _runtime

        problem = ""
        try:
            self._record()
            before = sum(size for _, size in _native.live_sizes())
        except RuntimeError as error:
            problem = str(error)
        let_go = _leftovers.let_go(self._shell)
        ended = _runtime.drain(_recording.DRAIN_S)
        if problem:
            print(f"Let go of {let_go}; how much came back is not known: {problem}")
            return
        now = _notebook_memory.memory()
        size = _native.human_size
        head = f"Let go of {let_go}: {size(max(before - now.bytes, 0))} came back, {size(now.bytes)} in use."
        notes = [] if ended else ["Work is still queued: what it uses comes back when it ends."]
        notes.extend(_notebook_memory.cached())
        in_use = _notebook_memory.by_variable(now.blocks, "Still in use")
        _display(_page.Page(head, [in_use], notes=notes, all_by=_notebook_memory.ALL))

    def _measure(self) -> None:
        if self._measurement is not None:
            raise _usage_error("this cell is being measured already")
        try:
            self._record()
        except RuntimeError as error:
            # The cell is worth more than its measurement.
            print(f"This cell is not measured: {error}", file=sys.stderr)
            return
        from dpmem._measurement import Measurement

        self._measurement = Measurement(self._shell, self._current_file(), self._measured)

    def _measured(self, page: Any) -> None:
        self._measurement = None
        _display(page)

    def _record_or_refuse(self) -> None:
        try:
            self._record()
        except RuntimeError as error:
            raise _usage_error(f"dpmem can't record here: {error}") from None

    def _is_ours(self) -> bool:
        """Whether the recording is the one that a magic began; the program may have begun another since."""
        if self._recording is None:
            return False
        from dpmem import _native

        return _native.recording_id() == self._recording

    def _record(self) -> None:
        """Have everything recorded from now on, and know which cell runs when."""
        from dpmem import _cells, _native, _tracking

        if not _tracking.is_tracking():
            _tracking.start()
            self._recording = _native.recording_id()
            self._cell = _cells.newest(self._current_file())
        if not self._listening:
            self._shell.events.register("pre_run_cell", self._note_run)
            self._listening = True
            file = self._current_file()
            self._note(_cells.newest(file), file)

    def _stop(self) -> None:
        from dpmem import _tracking

        if not _tracking.is_tracking():
            print("dpmem is not recording.")
            return
        _tracking.stop()
        print(
            "dpmem is still recording, for `dpmem run`."
            if _tracking.is_tracking()
            else "dpmem is not recording any more."
        )

    def _note_run(self, info: Any) -> None:
        from dpmem import _cells

        transformed = getattr(info, "transformed_cell", None) or info.raw_cell
        # IPython 9 has counted a cell of the history already, 8 will do so at its end; the prompt is right in both.
        number = self._shell.displayhook.prompt_count
        self._note(number, _cells.file_of(info.raw_cell, transformed, number))

    def _note(self, number: int | None, file: str) -> None:
        from dpmem import _cells, _native

        if number is not None:
            _cells.runs.append((number, file, _native.ticks()))

    def _current_file(self) -> str:
        """The file of the cell that is running."""
        from dpmem import _cells

        frame = sys._getframe()
        while frame is not None:
            if _cells.is_cell(frame.f_code.co_filename):
                return frame.f_code.co_filename
            frame = frame.f_back  # type: ignore[assignment]
        return ""


def _display(page: Any) -> None:
    from IPython.display import display

    display(page)


def _usage_error(text: str) -> Exception:
    from IPython.core.error import UsageError

    error: Exception = UsageError(text)
    return error
