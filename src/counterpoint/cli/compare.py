"""``counterpoint compare``: is it a difference? Paired by task, with intervals and a verdict in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, write_text
from counterpoint.cli.trace_options import ALL, HOW, TraceOptions, takes_trace_options

if TYPE_CHECKING:
    from counterpoint.scores import Scores

FORMATS = ("table", "json", "html")


@takes_trace_options(ALL - {"system"})
def compare(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...", help="Traces, or what `score --format json -o` wrote (.json); at least one."
        ),
    ],
    delta: Annotated[
        list[str] | None,
        typer.Option(
            "--delta", metavar="[METRIC=]D", help="Largest difference that does not matter. Repeatable."
        ),
    ] = None,
    unpaired: Annotated[bool, typer.Option("--unpaired", help="The sides ran different tasks.")] = False,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="Form of the output.")
    ] = "table",
    output: options.Output = None,
    metrics: options.Metrics = None,
    how: TraceOptions = HOW,
    workers: options.Workers = None,
    no_cache: options.NoCache = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare runs: differences, intervals, tests, and a verdict in words."""
    choose(format, FORMATS, "--format")
    from counterpoint.cli.score import evaluate_readings, finish
    from counterpoint.compare import compare as compare_scores
    from counterpoint.scores import is_scores, read_scores

    sides: list[Scores] = []
    readings = []
    for path in paths:
        if is_scores(path):
            sides.append(_chosen(read_scores(path), path, metrics))
            continue
        (reading,) = how.open([path])
        readings.append(reading)
        sides.append(
            evaluate_readings(
                [reading],
                quiet=quiet,
                metrics=metrics or None,
                **how.judging,
                workers=workers,
                cache=not no_cache,
            )
        )
    empty = [reading for reading in readings if reading.errors and not reading.detected]
    if empty:
        finish(empty, None, quiet=quiet)
    found = compare_scores(*sides, delta=deltas(delta), paired=not unpaired)
    text = {
        "table": lambda: str(found),
        "json": found.to_json,
        "html": found._repr_html_,
    }[format]()
    write_text(text, output if output is None else Path(output))
    finish(readings, None, quiet=quiet)


def _chosen(scores: Scores, path: str, metrics: list[str] | None) -> Scores:
    """The rows of the metrics asked for; an error names one that the file does not hold."""
    from counterpoint.errors import UsageError
    from counterpoint.metrics import metric

    if not metrics:
        return scores
    wanted = [str(metric(text)) for text in metrics]
    for name in wanted:
        if name not in scores.metrics:
            raise UsageError(f"{path} holds no {name}: it has {', '.join(scores.metrics)}")
    scores.rows = [row for row in scores.rows if row.metric in wanted]
    return scores


def deltas(given: list[str] | None) -> float | dict[str, float] | None:
    """``0.02`` or ``accuracy=0.02`` options to what `compare` takes."""
    from counterpoint.errors import UsageError

    found: dict[str, float] = {}
    for text in given or ():
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"--delta {text!r} is not of the form D or METRIC=D") from None
    if not found:
        return None
    if "" in found and len(found) > 1:
        raise UsageError("--delta: give one D for all metrics, or METRIC=D for each")
    return found.get("", found)
