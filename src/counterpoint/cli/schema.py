"""``counterpoint schema``: the JSON Schema of what goes in and what comes out."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from counterpoint.cli.output import choose, write_text


def schema(
    what: Annotated[
        str, typer.Argument(metavar="trace|scores", help="A native trace line, or the JSON of `score`.")
    ],
) -> None:
    """Print the JSON Schema of a native trace line or of the JSON that `score` prints."""
    from counterpoint import scores, trace

    choose(what, ("trace", "scores"), "schema")
    found = trace.json_schema() if what == "trace" else scores.json_schema()
    write_text(json.dumps(found, indent=2), None)
