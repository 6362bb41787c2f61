"""``counterpoint doctor``: what was detected, what it can carry, and what to record for the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, write_text
from counterpoint.cli.trace_options import HOW, READING, TraceOptions, takes_trace_options

if TYPE_CHECKING:
    from counterpoint.doctor import Examination, FormatFacts

NAMED = 8
"""Agents, warnings and files that are named before the rest is only counted."""


@takes_trace_options(READING | {"evidence"})
def doctor(
    path: Annotated[str, typer.Argument(metavar="PATH", help="File, folder, glob, or - for stdin.")],
    metrics: options.Metrics = None,
    format: Annotated[
        str, typer.Option("--format", metavar="text|json", help="Form of the output.")
    ] = "text",
    output: options.Output = None,
    roles: options.Roles = "default",
    how: TraceOptions = HOW,
) -> None:
    """Say what was detected, which metrics it can carry, and for each that it cannot: what to record."""
    choose(format, ("text", "json"), "--format")
    from counterpoint.doctor import examine
    from counterpoint.scores import plain
    from counterpoint.secrets import mask

    (reading,) = how.open([path])
    found = examine(reading, metrics or None, evidence=how.evidence, roles=roles)
    if format == "json":
        document = {
            "formats": [plain(facts) for facts in found.formats],
            "metrics": [plain(entry) for entry in found.metrics],
            "detected": found.detected,
            "errors": [mask(error) for error in found.errors],
            "notes": [mask(note) for note in found.notes],
        }
        write_text(json.dumps(document, indent=2, ensure_ascii=False), output)
    else:
        write_text(mask("\n".join(_lines(found))), output)
    if found.errors:
        raise typer.Exit(2)


def _lines(found: Examination) -> Iterator[str]:
    if not found.formats:
        yield "no trace was read"
    for facts in found.formats:
        yield from _facts(facts)
        yield ""
    if found.metrics and found.formats:
        yield "metrics"
        for entry in found.metrics:
            mark = "yes" if entry.traces == entry.of else "no" if not entry.traces else "part"
            count = "" if mark == "yes" else f"  ({entry.traces} of {entry.of} traces)"
            yield f"  {mark:<5}{entry.metric}{count}"
            for advice in entry.advice:
                yield f"         {advice}"
    for title, texts in (("errors", found.errors), ("notes", found.notes)):
        if texts:
            yield ""
            yield title
            yield from (f"  {text}" for text in _some(texts))


def _facts(facts: FormatFacts) -> Iterator[str]:
    agent_steps = facts.steps.get("agent", 0)
    yield f"{facts.format}: {facts.traces} traces"
    if facts.spans:
        yield f"  spans        {facts.spans}, {facts.orphans} without their parent"
    if facts.totals_left_out:
        yield f"  tokens       token totals left out: {facts.totals_left_out} (the calls in them count, once)"
    if facts.cut_off:
        yield f"  cut off      {facts.cut_off} of {facts.traces} traces: a span never ended, or no root span"
    yield f"  steps        {_counts(facts.steps) or 'none'}"
    yield f"  agents       {_counts(facts.agents) or 'none'}"
    yield f"  transfers    {_counts(facts.transfers) or 'none known'}"
    for label, count in (
        ("no text", facts.without_text),
        ("no tokens", facts.without_tokens),
        ("no times", facts.without_times),
        ("never ended", facts.unfinished),
        ("repeated", facts.repeated),
    ):
        if count:
            yield f"  {label:<13}{count} of {agent_steps} agent steps"
    if facts.unmapped_roles:
        yield f"  no role      {_counts(facts.unmapped_roles)} (name them with --roles FILE)"
    for cycle in facts.cycles:
        yield f"  cycle        {cycle}"
    for warning in _some(
        [f"{text} ({count}x)" if count > 1 else text for text, count in facts.warnings.items()]
    ):
        yield f"  warning      {warning}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(_some([f"{name} {count}" for name, count in counts.items()]))


def _some(texts: list[str]) -> list[str]:
    more = len(texts) - NAMED
    return texts if more <= 0 else [*texts[:NAMED], f"... and {more} more"]
