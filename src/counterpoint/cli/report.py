"""``counterpoint report``: read traces, compute metrics, write one HTML file to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import say, write_text
from counterpoint.cli.trace_options import HOW, TraceOptions, takes_trace_options

if TYPE_CHECKING:
    from counterpoint.scores import Scores
    from counterpoint.view.report_trace import Seen


@takes_trace_options()
def report(
    paths: options.Paths,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the page.")
    ] = Path("report.html"),
    metrics: options.Metrics = None,
    how: TraceOptions = HOW,
    no_cache: options.NoCache = False,
    quiet: options.Quiet = False,
) -> None:
    """Read traces, compute metrics, write one HTML page: numbers, pictures, and what was said."""
    from counterpoint.cli.score import evaluate_readings, finish
    from counterpoint.view.report_trace import Pages

    readings = how.open(paths)
    scores = evaluate_readings(
        readings,
        quiet=quiet,
        metrics=metrics or None,
        **how.judging,
        cache=not no_cache,
        observe=Pages(),
    )
    write_report(scores, scores.observed, output, quiet=quiet)
    finish(readings, scores, quiet=quiet)


def write_report(scores: Scores, seen: Sequence[Seen], output: Path, *, quiet: bool = False) -> None:
    """The page to a file, and a line on stderr that says where."""
    from counterpoint.view.report import report_html

    write_text(report_html(scores, seen), output)
    if not quiet:
        say(f"wrote {output}: open it in a browser")
