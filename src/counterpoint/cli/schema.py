"""``counterpoint schema``: the JSON Schema of what goes in and what comes out."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from counterpoint.cli.output import choose, write_text


def schema(
    what: Annotated[
        str,
        typer.Argument(
            metavar="trace|scores|runs",
            help="A native trace line, or the JSON of `score` or of `store list`.",
        ),
    ],
) -> None:
    """Print the JSON Schema of a native trace line or of the JSON that `score` or `store list` prints."""
    from counterpoint import scores, trace
    from counterpoint.view import run_list

    schemas = {"trace": trace.json_schema, "scores": scores.json_schema, "runs": run_list.json_schema}
    choose(what, tuple(schemas), "schema")
    found = schemas[what]()
    write_text(json.dumps(found, indent=2), None)
