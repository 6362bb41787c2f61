"""``counterpoint check``: gate a build on process metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, write_text

FORMATS = ("text", "json", "md")


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
    gold: options.Gold = None,
    format_from: options.From = "auto",
    profile: options.Profile = "strict",
    evidence: options.EvidenceLevel = "broadcast",
    system: options.System = None,
    exclude_agent: options.ExcludeAgent = None,
    rename_agent: options.RenameAgent = None,
    embedder: options.EmbedderName = "default",
    answers: options.Answers = None,
    answer_pattern: options.AnswerPattern = None,
    regrade: options.Regrade = False,
    name_key: options.NameKey = "name",
    role_key: options.RoleKey = "role",
    group_by: options.GroupBy = None,
    max_bytes: options.MaxBytes = 256 * 2**20,
    workers: options.Workers = None,
    no_cache: options.NoCache = False,
    quiet: options.Quiet = False,
) -> None:
    """Gate a build: exit code 0 passed, 1 failed, 2 bad usage or unreadable input, 3 not evaluable."""
    choose(format, FORMATS, "--format")
    from counterpoint.check import check_scores, gate_metrics
    from counterpoint.cli.score import evaluate_readings, finish, open_readings, renames
    from counterpoint.errors import UsageError
    from counterpoint.gates import parse_gates
    from counterpoint.scores import read_scores
    from counterpoint.view import ci

    if fail_on is None and baseline is None:
        raise UsageError("check needs --fail-on CONDITIONS or --baseline FILE")
    gates = parse_gates(fail_on) if fail_on is not None else []
    earlier = read_scores(baseline) if baseline is not None else None
    wanted = gate_metrics(gates) + (metrics or (earlier.metrics if earlier else []))
    readings = open_readings(
        paths,
        format=format_from,
        system=system,
        exclude_agents=exclude_agent or (),
        rename_agents=renames(rename_agent),
        name_key=name_key,
        role_key=role_key,
        group_by=group_by,
        max_bytes=max_bytes,
    )
    scores = evaluate_readings(
        readings,
        quiet=quiet,
        metrics=list(dict.fromkeys(wanted)),
        profile=profile,
        evidence=evidence,
        gold=gold,
        answers=answers,
        answer_pattern=answer_pattern,
        regrade=regrade,
        embedder=embedder,
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
