"""What a magic shows: one page as plain text and as HTML.

The HTML has no script and loads nothing. Its colours are those of the place where it is shown: text is never given a
colour of its own, so there is no theme to guess; JupyterLab's variables choose the accents.
"""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import dataclass, field
from html import escape

from dpmem import _native

#: Rows that a section shows unless all are asked for, and names that a row does.
ROWS_MAX, NAMES_MAX = 12, 24
_WIDTH_MAX = 120

# The class is written twice to outweigh what JupyterLab says of tables and of code.
_STYLE = """
.dpmem { font-size: var(--jp-code-font-size, 13px); line-height: 1.5; overflow-x: auto; }
.dpmem.dpmem p { margin: 0 0 .6em; }
.dpmem.dpmem .head { font-size: 115%; }
.dpmem.dpmem table { border-collapse: collapse; border: none; margin: 0 0 1em; font-size: inherit; }
.dpmem.dpmem caption { caption-side: top; text-align: left; font-weight: 600; padding: 0 0 .2em; color: inherit; }
.dpmem.dpmem tbody tr, .dpmem.dpmem tbody tr:nth-child(even), .dpmem.dpmem tbody tr:hover { background: none; }
.dpmem.dpmem td { border: none; padding: .12em 1.2em .12em 0; text-align: left; vertical-align: top; max-width: none;
  white-space: normal; }
.dpmem.dpmem td.bytes { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.dpmem.dpmem td.where { white-space: nowrap; }
.dpmem.dpmem td.share { width: 6em; min-width: 6em; padding-top: .5em; }
.dpmem.dpmem .bar { height: .6em; min-width: 2px; border-radius: 1px; background: var(--jp-brand-color1, #1976d2); }
.dpmem.dpmem code { background: none; border: none; padding: 0; color: inherit; font-size: inherit;
  font-family: var(--jp-code-font-family, monospace); white-space: pre-wrap; }
.dpmem.dpmem .also { opacity: .8; }
.dpmem.dpmem .finding { margin: 0 0 .8em; padding: 0 0 0 .8em; border-left: 3px solid var(--jp-warn-color1, #e08a00); }
.dpmem.dpmem .finding.error { border-left-color: var(--jp-error-color1, #d32f2f); }
.dpmem.dpmem .finding.note { border-left-color: var(--jp-info-color1, #1976d2); }
"""


@dataclass
class Row:
    """Bytes, what they belong to, where that was made, and other words on it."""

    bytes: int
    name: str
    where: str = ""
    also: list[str] = field(default_factory=list)
    #: What `also` is introduced with.
    link: str = "also"


@dataclass
class Section:
    """A table of rows."""

    title: str
    rows: list[Row]
    #: What it says when there are none; left out if empty.
    nothing: str = ""


@dataclass
class Finding:
    """A finding, and the line it is about."""

    severity: str
    code: str
    name: str
    where: str
    message: str
    advice: str


@dataclass
class Page:
    """Prints well, and better in a notebook."""

    head: str
    sections: list[Section] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows_max: int | None = ROWS_MAX
    #: What to type for the rows that are left out, if that shows them.
    all_by: str = ""

    def __str__(self) -> str:
        width = min(shutil.get_terminal_size((100, 24)).columns, _WIDTH_MAX)
        blocks = [_wrapped(self.head, width)]
        blocks.extend(filter(None, (self._section_text(section, width) for section in self.sections)))
        blocks.extend(_finding_text(finding, width) for finding in self.findings)
        blocks.extend(_wrapped(note, width) for note in self.notes)
        return "\n\n".join(blocks)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f'<p class="head">{escape(self.head)}</p>']
        parts.extend(self._section_html(section) for section in self.sections)
        parts.extend(_finding_html(finding) for finding in self.findings)
        parts.extend(f"<p>{escape(note)}</p>" for note in self.notes)
        return f'<div class="dpmem"><style>{_STYLE}</style>{"".join(parts)}</div>'

    def _shown(self, section: Section) -> tuple[list[Row], str]:
        """The rows that are shown, and a line on those that are not."""
        rows = section.rows if self.rows_max is None else section.rows[: self.rows_max]
        rest = section.rows[len(rows) :]
        if not rest:
            return rows, ""
        size = _native.human_size(sum(row.bytes for row in rest))
        hint = f": {self.all_by}" if self.all_by else ""
        return rows, f"… and {_native.human_count(len(rest))} more, {size}{hint}"

    def _section_text(self, section: Section, width: int) -> str:
        if not section.rows:
            return f"{section.title}\n  {section.nothing}" if section.nothing else ""
        rows, rest = self._shown(section)
        # A name that is longer than that stands for itself.
        room = max(width // 2 - 12, 20)
        names = max((len(row.name) for row in rows if len(row.name) <= room), default=0)
        lines = [section.title]
        for row in rows:
            lines.append(f"{_native.human_size(row.bytes):>10}  {row.name:<{names}}  {row.where}".rstrip())
            if row.also:
                lines.append(_wrapped(f"{row.link} {_listed(row.also)}".strip(), width, " " * 16))
        return "\n".join([*lines, *([f"{'':>12}{rest}"] if rest else [])])

    def _section_html(self, section: Section) -> str:
        title, nothing = escape(section.title), escape(section.nothing)
        if not section.rows:
            return f"<p><strong>{title}</strong><br>{nothing}</p>" if nothing else ""
        rows, rest = self._shown(section)
        most = max(max(row.bytes for row in rows), 1)
        body = [_row_html(row, 100 * row.bytes / most) for row in rows]
        if rest:
            body.append(f'<tr><td></td><td></td><td colspan="2">{escape(rest)}</td></tr>')
        return f"<table><caption>{title}</caption><tbody>{''.join(body)}</tbody></table>"


def _row_html(row: Row, percent: float) -> str:
    also = f'<div class="also">{escape(row.link)} <code>{escape(_listed(row.also))}</code></div>' if row.also else ""
    return (
        f'<tr><td class="bytes">{escape(_native.human_size(row.bytes))}</td>'
        f'<td class="share"><div class="bar" style="width: {percent:.0f}%"></div></td>'
        f"<td><code>{escape(row.name)}</code>{also}</td>"
        f'<td class="where">{escape(row.where)}</td></tr>'
    )


def _finding_text(finding: Finding, width: int) -> str:
    head = f"{finding.severity} {finding.code} {finding.name}  {finding.where}"
    return "\n".join([head, _wrapped(finding.message, width, "  "), _wrapped(finding.advice, width, "  ")])


def _finding_html(finding: Finding) -> str:
    return (
        f'<div class="finding {escape(finding.severity)}"><strong>{escape(finding.severity)} {escape(finding.code)} '
        f"{escape(finding.name)}</strong> {escape(finding.where)}<br>{escape(finding.message)}<br>"
        f"{escape(finding.advice)}</div>"
    )


def _listed(names: list[str]) -> str:
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {_native.human_count(more)} more" if more > 0 else "")


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
