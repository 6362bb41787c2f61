"""``counterpoint list``: everything registered, with range, direction and source."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from counterpoint.cli.output import choose, console, to_stdout, write_text


def list_(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="metrics, adapters, ...")],
    format: Annotated[
        str, typer.Option("--format", metavar="table|json", help="Form of the output.")
    ] = "table",
) -> None:
    """List everything registered of one kind: metrics, adapters, ..."""
    from counterpoint.registry import KINDS, names, plural

    kinds = {plural(known): known for known in KINDS}
    choose(kind, tuple(kinds), "kind")
    choose(format, ("table", "json"), "--format")
    entries = [_entry(kinds[kind], name) for name in names(kinds[kind])]
    if format == "json":
        write_text(json.dumps(entries, indent=2), None)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in entries[0]:
        table.add_column(column)
    for entry in entries:
        table.add_row(*(Text(_cell(value)) for value in entry.values()))
    with to_stdout():
        console().print(table)


def _entry(kind: str, name: str) -> dict[str, Any]:
    from counterpoint.registry import lookup

    found = lookup(kind, name)
    if kind == "metric":
        return {
            "name": name,
            "range": list(found.range),
            "better": found.better,
            "unit": found.unit,
            "summary": found.summary,
            "source": found.source,
            "needs": list(found.needs),
            "parameters": dict(found.parameters),
        }
    summary = getattr(found, "summary", None) or (found.__doc__ or "").strip().partition("\n")[0]
    return {"name": name, "summary": summary}


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join("…" if item is None else str(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    return str(value)
