"""``counterpoint check``: gate a build on process metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, write_text
from counterpoint.cli.trace_options import HOW, TraceOptions, takes_trace_options

FORMATS = ("text", "json", "md")


@takes_trace_options()
def check(
    paths: options.Paths,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="CONDITIONS", help="What fails the check: 'upr>0.4, ids<0.3'."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Earlier `score --format json`; fail where worse."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", metavar="T", min=0, help="How much worse than the baseline is accepted."),
    ] = 0.0,
    metrics: options.Metrics = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")] = None,
    sarif: Annotated[Path | None, typer.Option("--sarif", metavar="FILE", help="Write SARIF 2.1.0.")] = None,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="Form of the output.")
    ] = "text",
    output: options.Output = None,
    how: TraceOptions = HOW,
    workers: options.Workers = None,
    no_cache: options.NoCache = False,
    quiet: options.Quiet = False,
) -> None:
    """Gate a build: exit code 0 passed, 1 failed, 2 bad usage or unreadable input, 3 not evaluable."""
    choose(format, FORMATS, "--format")
    from counterpoint.check import check_scores, gate_metrics
    from counterpoint.cli.score import evaluate_readings, finish
    from counterpoint.errors import UsageError
    from counterpoint.gates import parse_gates
    from counterpoint.scores import read_scores
    from counterpoint.view import ci

    if fail_on is None and baseline is None:
        raise UsageError("check needs --fail-on CONDITIONS or --baseline FILE")
    gates = parse_gates(fail_on) if fail_on is not None else []
    earlier = read_scores(baseline) if baseline is not None else None
    wanted = gate_metrics(gates) + (metrics or (earlier.metrics if earlier else []))
    readings = how.open(paths)
    scores = evaluate_readings(
        readings,
        quiet=quiet,
        metrics=list(dict.fromkeys(wanted)),
        **how.judging,
        workers=workers,
        cache=not no_cache,
    )
    result = check_scores(scores, gates, baseline=earlier, tolerance=tolerance)
    if junit is not None:
        write_text(ci.junit(result), junit)
    if sarif is not None:
        write_text(ci.sarif(result, paths[0]), sarif)
    text = {
        "text": lambda: str(result),
        "json": lambda: ci.as_json(result),
        "md": lambda: ci.markdown(result),
    }
    write_text(text[format](), output)
    finish(readings, scores, quiet=quiet)
    if result.exit_code:
        raise typer.Exit(result.exit_code)
