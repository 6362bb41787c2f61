"""``counterpoint score``: read traces, compute metrics, print a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, console, say, say_some, to_stdout, write_text
from counterpoint.cli.trace_options import HOW, TraceOptions, takes_trace_options

if TYPE_CHECKING:
    from counterpoint.adapters import Reading
    from counterpoint.scores import Scores
    from counterpoint.trace import Trace

FORMATS = ("table", "json", "jsonl", "csv", "md")


@takes_trace_options(before={"format": ("gold", "format_from")})
def score(
    paths: options.Paths,
    metrics: options.Metrics = None,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="Form of the output.")
    ] = "table",
    output: options.Output = None,
    how: TraceOptions = HOW,
    engine: options.Engine = "local",
    workers: options.Workers = None,
    no_cache: options.NoCache = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write the page of `report`.")
    ] = None,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """Read traces, compute metrics, print a table: per system and over all, and what to change."""
    choose(format, FORMATS, "--format")
    choose(engine, ("local",), "--engine")
    from counterpoint.cli.report import write_report

    readings = how.open(paths)
    scores = evaluate_readings(
        readings,
        quiet=quiet,
        metrics=metrics or None,
        **how.judging,
        workers=workers,
        cache=not no_cache,
        observe=_observer(format, html),
    )
    seen = scores.observed
    if html is not None:
        scores.observed = [one.found for one in seen if one.found is not None]
    show(scores, format, output, keep_secrets=keep_secrets)
    if html is not None:
        write_report(scores, seen, html, quiet=quiet)
    finish(readings, scores, quiet=quiet)


def _observer(format: str, html: Path | None) -> Any:
    """What is kept of each trace: for the page, for the findings below a table, or nothing."""
    if html is not None:
        from counterpoint.view.report_trace import Pages

        return Pages()
    if format == "table":
        from counterpoint.findings import Observer

        return Observer()
    return None


def evaluate_readings(readings: list[Reading], *, quiet: bool = False, **how: Any) -> Scores:
    """Every reading scored, in order; trace ids that clash between arguments get the argument as prefix."""
    from counterpoint.evaluate import evaluate
    from counterpoint.scores import Scores

    scores = Scores([], [])
    seen: set[str] = set()
    for reading in readings:
        traces = _unique(_progress(reading, quiet), reading.run, seen)
        scores = scores + evaluate(traces, run=reading.run, **how)
    if any(scores.traces) and "no traces to score" in scores.warnings:
        scores.warnings.remove("no traces to score")
    return scores


def _unique(traces: Iterator[Trace], run: str, seen: set[str]) -> Iterator[Trace]:
    from msgspec.structs import replace

    earlier = set(seen)
    for trace in traces:
        if trace.id in earlier:
            trace = replace(trace, id=f"{run}:{trace.id}")
        seen.add(trace.id)
        yield trace


def _progress(reading: Reading, quiet: bool) -> Iterator[Trace]:
    """The traces, counted on stderr while they pass, on a terminal only."""
    talk = console(stderr=True)
    if quiet or not talk.is_terminal:
        yield from reading
        return
    with talk.status("scoring") as status:
        for number, trace in enumerate(reading, 1):
            if number % 16 == 1:
                status.update(f"scoring: {number} traces")
            yield trace


def show(scores: Scores, format: str, output: Path | None, *, keep_secrets: bool = False) -> None:
    """Print or write the scores in one of FORMATS."""
    from counterpoint.view import table, tabular

    if format == "table" and not scores.traces:
        return
    if format == "table" and output is None:
        screen = console()
        with to_stdout():
            screen.print(table.summary(scores, keep_secrets=keep_secrets, width=screen.width))
        return
    text = {
        "table": lambda: table.text(scores, keep_secrets=keep_secrets),
        "json": lambda: scores.to_json(keep_secrets=keep_secrets),
        "jsonl": lambda: tabular.jsonl(scores, keep_secrets=keep_secrets),
        "csv": lambda: tabular.csv_text(scores, keep_secrets=keep_secrets),
        "md": lambda: tabular.markdown(scores, keep_secrets=keep_secrets),
    }[format]()
    write_text(text, output)


def finish(readings: list[Reading], scores: Scores | None, *, quiet: bool = False) -> None:
    """Tell what was noticed while reading; exit code 2 where something could not be read."""
    if not quiet:
        notes = [note for reading in readings for note in reading.notes]
        say_some(notes, "note")
        if scores is not None:
            say_some(scores.warnings, "warning")
    errors = [error for reading in readings for error in reading.errors]
    for error in errors:
        say(f"error: {error}")
    if errors:
        raise typer.Exit(2)
