"""``counterpoint convert``: any trace format to the native one."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import say, to_stdout
from counterpoint.cli.trace_options import HOW, READING, TraceOptions, takes_trace_options


@takes_trace_options(READING)
def convert(
    paths: options.Paths,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="out.jsonl, out.jsonl.gz, out.parquet, or - for stdout."
        ),
    ] = Path("-"),
    how: TraceOptions = HOW,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """Convert traces of any format to the native JSONL (or Parquet)."""
    from counterpoint.adapters import write
    from counterpoint.cli.score import finish

    readings = how.open(paths)
    with to_stdout():
        count = write(chain.from_iterable(readings), str(output), keep_secrets=keep_secrets)
    if not quiet:
        say(f"{count} traces written to {'stdout' if str(output) == '-' else output}")
    finish(readings, None, quiet=quiet)
