"""``counterpoint demo``: two teams with equal accuracy and unequal waste, scored without key or network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.output import choose


def demo(
    format: Annotated[
        str, typer.Option("--format", metavar="table|json|jsonl|csv|md", help="Form of the output.")
    ] = "table",
) -> None:
    """Score the bundled traces of two teams: equal accuracy, unequal diversity and waste."""
    from counterpoint.cli.score import FORMATS, evaluate_readings, finish, show
    from counterpoint.cli.trace_options import open_readings
    from counterpoint.findings import Observer

    choose(format, FORMATS, "--format")
    readings = open_readings([str(traces_folder())])
    scores = evaluate_readings(readings, quiet=True, observe=Observer() if format == "table" else None)
    show(scores, format, None)
    if format == "table":
        typer.echo(
            "\nBoth teams are right equally often. IDS (higher is better) says whether agents add something\n"
            "of their own; UPR (lower is better) is the share of communication paths that helped no one.\n"
            "Your own traces: counterpoint score PATH"
        )
    finish(readings, scores)


def traces_folder() -> Path:
    """The bundled traces: in the installed package, or in the repository's examples."""
    installed = Path(__file__).parents[1] / "examples"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "examples" / "traces"
