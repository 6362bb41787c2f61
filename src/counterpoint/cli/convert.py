"""``counterpoint convert``: any trace format to the native one."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import say, to_stdout


def convert(
    paths: options.Paths,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="out.jsonl, out.jsonl.gz, out.parquet, or - for stdout."
        ),
    ] = Path("-"),
    format_from: options.From = "auto",
    system: options.System = None,
    exclude_agent: options.ExcludeAgent = None,
    rename_agent: options.RenameAgent = None,
    name_key: options.NameKey = "name",
    role_key: options.RoleKey = "role",
    group_by: options.GroupBy = None,
    max_bytes: options.MaxBytes = 256 * 2**20,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """Convert traces of any format to the native JSONL (or Parquet)."""
    from counterpoint.adapters import write
    from counterpoint.cli.score import finish, open_readings, renames

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
    with to_stdout():
        count = write(chain.from_iterable(readings), str(output), keep_secrets=keep_secrets)
    if not quiet:
        say(f"{count} traces written to {'stdout' if str(output) == '-' else output}")
    finish(readings, None, quiet=quiet)
