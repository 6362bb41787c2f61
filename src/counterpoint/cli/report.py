"""``counterpoint report``: read traces, compute metrics, write one HTML file to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import say, write_text

if TYPE_CHECKING:
    from counterpoint.scores import Scores
    from counterpoint.view.report_trace import Seen


def report(
    paths: options.Paths,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the page.")
    ] = Path("report.html"),
    metrics: options.Metrics = None,
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
    no_cache: options.NoCache = False,
    quiet: options.Quiet = False,
) -> None:
    """Read traces, compute metrics, write one HTML page: numbers, pictures, and what was said."""
    from counterpoint.cli.score import evaluate_readings, finish, open_readings, renames
    from counterpoint.view.report_trace import Pages

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
        metrics=metrics or None,
        profile=profile,
        evidence=evidence,
        gold=gold,
        answers=answers,
        answer_pattern=answer_pattern,
        regrade=regrade,
        embedder=embedder,
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
