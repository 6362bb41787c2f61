"""Scores as a table that a person reads with pleasure: a line a metric, a column a system."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import cache

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from counterpoint.findings import ASSUMPTION, findings
from counterpoint.metrics import metric
from counterpoint.registry import names
from counterpoint.scores import Scores, Summary, plain
from counterpoint.secrets import mask

__all__ = ["arrow", "interval_text", "number", "reasons", "signed", "summary", "text"]

ARROWS = {"higher": "↑", "lower": "↓", "": ""}
COLUMN_WIDTH, LABEL_WIDTH = 27, 18
"""Characters that a system, and the metrics' names, take; what does not fit starts another table."""
REASONS = 12
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@cache
def arrow(text: str) -> str:
    """Which way is better for the metric of this text form; empty where neither is, or it is not known."""
    name = text.partition("(")[0]
    return ARROWS[metric(name).better] if name in names("metric") else ""


def text(scores: Scores, *, keep_secrets: bool = False) -> str:
    """The table as plain text, 120 columns wide."""
    out = io.StringIO()
    Console(file=out, width=120, color_system=None, highlight=False).print(
        summary(scores, keep_secrets=keep_secrets)
    )
    return out.getvalue()


def summary(scores: Scores, *, keep_secrets: bool = False, width: int = 120) -> RenderableType:
    """Per system and over all: mean, 95 % interval, undefined rows; why rows are undefined; then findings."""
    entries = [Summary(**plain(entry, keep_secrets=keep_secrets)) for entry in scores.summary()]
    systems = list(dict.fromkeys(entry.system for entry in entries))
    if len(systems) == 2:  # one system: the fold over all says the same again
        systems = systems[:1]
    counts: dict[str | None, int] = {None: len(scores.traces)}
    for info in scores.traces:
        counts[info.system] = counts.get(info.system, 0) + 1
    parts: list[RenderableType] = []
    beside = max(1, (width - LABEL_WIDTH) // COLUMN_WIDTH)
    for start in range(0, len(systems), beside):
        parts.append(_table(entries, systems[start : start + beside], counts, scores))
        parts.append(Text())
    parts.extend(_reasons(entries))
    parts.append(Text(_signature(scores), style="dim"))
    parts.extend(_findings(scores, keep_secrets))
    return Group(*parts)


def _table(
    entries: list[Summary], systems: list[str | None], counts: dict[str | None, int], scores: Scores
) -> Table:
    known = {(entry.system, entry.metric): entry for entry in entries}
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("metric", overflow="fold")
    for system in systems:
        name = "all" if system is None else _line(system) or "(no name)"
        table.add_column(Text(f"{name}  n={counts.get(system, 0)}"), overflow="fold")
    for name in scores.metrics:
        label = f"{name} {arrow(name)}"
        cells = [_cell(known.get((system, name)), scores.unread(name, system)) for system in systems]
        table.add_row(Text(label), *cells)
    return table


def _cell(entry: Summary | None, beside: str) -> Text:
    if entry is None:
        return Text("")
    cell = Text(number(entry.mean, entry.metric))
    if bounds := interval_text(entry):
        cell.append(f"  {bounds}", style="dim")
    if entry.undefined:
        cell.append(f"  {entry.undefined} undefined", style="yellow")
    if beside:
        cell.append(f"  {beside}", style="yellow")
    return cell


def number(value: float | None, name: str) -> str:
    """A mean as people write it: shares with three decimals, counts without needless ones, "−" below zero."""
    if value is None:
        return "–"
    if abs(value) >= 1000:
        text = f"{value:,.0f}"
    elif name.startswith("cost"):
        text = f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"
    elif _is_share(name):
        text = f"{value:.3f}"
    else:
        text = f"{value:.{1 if abs(value) >= 100 else 2}f}".rstrip("0").rstrip(".")
    return text.replace("-", "−" if text.strip("-0.") else "", 1)  # no minus sign before nothing


def signed(value: float, name: str) -> str:
    """A difference, as `number`, with "+" above zero.

    >>> signed(0.25, "upr"), signed(-2.0, "steps"), signed(0.0, "steps")
    ('+0.250', '−2', '0')
    """
    return ("+" if value > 0 else "") + number(value, name)


@cache
def _is_share(text: str) -> bool:
    """Whether the metric lies between two finite ends (a count does not)."""
    name = text.partition("(")[0]
    return name not in names("metric") or None not in metric(name).range


def interval_text(entry: Summary) -> str:
    """``[low, high]``, with ``~`` before a rough one; then the bounds over weights; empty without either."""
    parts = []
    if entry.ci_low is not None and entry.ci_high is not None:
        rough = "~" if "rough" in entry.note else ""
        parts.append(f"{rough}[{number(entry.ci_low, entry.metric)}, {number(entry.ci_high, entry.metric)}]")
    if entry.low is not None and entry.high is not None:
        low, high = number(entry.low, entry.metric), number(entry.high, entry.metric)
        parts.append(f"weights [{low}, {high}]")
    return " ".join(parts)


def _reasons(entries: list[Summary]) -> Iterator[Text]:
    told = list(reasons(entries))
    for line in told:
        yield Text(line, style="yellow")
    if told:
        yield Text()


def reasons(entries: list[Summary]) -> Iterator[str]:
    """Why rows are undefined, over all systems, with counts: a line each."""
    told = [
        (f"{entry.metric}: {count} undefined: {_line(reason)}")
        for entry in entries
        if entry.system is None
        for reason, count in sorted(entry.reasons.items(), key=lambda item: (-item[1], item[0]))
    ]
    yield from told[:REASONS]
    if len(told) > REASONS:
        yield f"... and {len(told) - REASONS} more reasons (--format json has all)"


def _findings(scores: Scores, keep_secrets: bool) -> Iterator[Text]:
    """What to change, where the traces were looked at for it; a line each."""
    found = findings(scores.observed)
    if not found:
        return
    yield Text()
    yield Text("what to change", style="bold")
    several = len(scores.systems) > 1
    for number, finding in enumerate(found, 1):
        name = f"{finding.system}: " if several else ""
        said = f"{number}. {name}{finding}"
        yield Text(_line(said if keep_secrets else mask(said)))
    if any(finding.is_estimate for finding in found):
        yield Text(f"Without: {ASSUMPTION}", style="dim")


def _signature(scores: Scores) -> str:
    """What the rows have in common: profile, evidence, embedder."""
    shared: dict[str, dict[str, None]] = {"profile": {}, "evidence": {}, "embedder": {}}
    for row in scores.rows:
        for name, values in shared.items():
            if name in row.signature:
                values[str(row.signature[name])] = None
    told = [f"{name} {', '.join(values)}" for name, values in shared.items() if values]
    return " · ".join(["mean [95 % interval over tasks]", *told])


def _line(text: str) -> str:
    return _CONTROL.sub("", " ".join(text.split()))
