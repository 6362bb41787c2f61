"""A run as the row of GEMMAS's Table 1: accuracy, prompt and completion tokens, IDS, UPR, with intervals.

Conventions
-----------
* Tokens are given twice: in millions over the whole run, as the paper does, and a question on average.
* ``unread`` is the share of runs whose final answer could not be read: they count as wrong.
* ``n`` is without the runs that failed, as a whole or in some calls: they are counted beside it and are in no
  other number.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from counterpoint.scores import Scores, Summary, plain
from counterpoint.view.table import interval_text, number
from counterpoint.view.tabular import escape_markdown

__all__ = ["METRICS", "NOTE", "markdown", "table"]

METRICS = ("accuracy", "tokens_in", "tokens_out", "ids", "upr", "unparsed")
"""What the row is made of."""
HEAD = ("system", "benchmark", "model", "n", "accuracy", "unread", "Ptok", "Ctok", "IDS", "UPR")
WIDE = 110
"""Columns of a terminal in which a row with its intervals has room."""
NOTE = "GEMMAS, Table 1: mean [95 % interval over tasks]; Ptok, Ctok: in all, and a question"


def table(
    scores: Scores, benchmark: str, model: str, crashed: int = 0, *, width: int = 120
) -> RenderableType:
    """The rows, one a system, for a terminal; each column a line of its own where it is narrow.

    ``crashed``: runs that failed without a trace.
    """
    grid = Table(
        box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", show_header=width >= WIDE
    )
    rows = _rows(scores, benchmark, model, crashed)
    if width >= WIDE:
        for name in HEAD:
            grid.add_column(name)
        for cells in rows:
            grid.add_row(*map(Text, cells))
    else:
        for name, *values in zip(HEAD, *rows, strict=True):
            grid.add_row(Text(name, style="bold"), *(Text(" ".join(value.split())) for value in values))
    return Group(grid, Text(), *(Text(line, style="yellow") for line in _undefined(scores)), _note(scores))


def markdown(scores: Scores, benchmark: str, model: str, crashed: int = 0) -> str:
    """The rows as a Markdown table, with the note below it."""
    lines = [f"| {' | '.join(HEAD)} |", f"| {' | '.join(['---'] * 3 + ['---:'] * (len(HEAD) - 3))} |"]
    for cells in _rows(scores, benchmark, model, crashed):
        names, values = (escape_markdown(cell) for cell in cells[:3]), (cell.split() for cell in cells[3:])
        lines.append(f"| {' | '.join([*names, *map(' '.join, values)])} |")
    told = [*_undefined(scores), str(_note(scores))]
    return "\n\n".join(["\n".join(lines), *map(escape_markdown, told)]) + "\n"


def _rows(scores: Scores, benchmark: str, model: str, crashed: int) -> list[list[str]]:
    entries = {
        (entry.system, entry.metric): Summary(**plain(entry))
        for entry in scores.summary()
        if entry.system is not None
    }
    return [
        [
            system,
            benchmark,
            model,
            _count(scores, system, crashed),
            *_mean(entries[system, "accuracy"]),
            _unread(scores, system),
            *(_tokens(scores, entries[system, name]) for name in ("tokens_in", "tokens_out")),
            *_mean(entries[system, "ids"]),
            *_mean(entries[system, "upr"]),
        ]
        for system in scores.systems
    ]


def _count(scores: Scores, system: str, crashed: int) -> str:
    failed = sum(
        row.system == system and row.metric == "accuracy" and "failed_calls" in row.parts
        for row in scores.rows
    )
    count = sum(info.system == system for info in scores.traces) - failed
    missing = failed + crashed
    return f"{count}\n(+{missing} failed)" if missing else str(count)


def _mean(entry: Summary) -> list[str]:
    return [f"{number(entry.mean, entry.metric)}\n{interval_text(entry)}".strip()]


def _tokens(scores: Scores, entry: Summary) -> str:
    values = [
        row.value
        for row in scores.rows
        if row.system == entry.system and row.metric == entry.metric and row.value is not None
    ]
    if not values:
        return "–"
    return (
        f"{sum(values) / 1e6:.3g} M\n{number(entry.mean, entry.metric)} each\n{interval_text(entry)}".strip()
    )


def _unread(scores: Scores, system: str) -> str:
    final = [
        row.parts["final"]
        for row in scores.rows
        if row.system == system and row.metric == "unparsed" and "final" in row.parts
    ]
    return f"{sum(final) / len(final):.3f}" if final else "–"


def _undefined(scores: Scores) -> list[str]:
    """Why values are missing, with counts; metrics that miss as many for one reason share a line."""
    missing: dict[tuple[str, int], list[str]] = {}
    for entry in scores.summary():
        for reason, count in entry.reasons.items() if entry.system is None else ():
            missing.setdefault((reason, count), []).append(entry.metric)
    return [
        f"{', '.join(metrics)}: {count} undefined: {' '.join(reason.split())}"
        for (reason, count), metrics in missing.items()
    ]


def _note(scores: Scores) -> Text:
    profiles = {str(row.signature["profile"]) for row in scores.rows if "profile" in row.signature}
    embedders = {str(row.signature["embedder"]) for row in scores.rows if "embedder" in row.signature}
    told = [NOTE, f"profile {', '.join(sorted(profiles))}", f"embedder {', '.join(sorted(embedders))}"]
    return Text(" · ".join(told), style="dim")
