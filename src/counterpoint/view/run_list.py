"""The runs of a store as a table, JSON, JSONL or CSV.

User text is hostile: keys are masked, control characters dropped, and a CSV cell is never a formula.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct
from rich.table import Table
from rich.text import Text

from counterpoint.scores import plain
from counterpoint.store import Run, Runs
from counterpoint.view.table import arrow, number
from counterpoint.view.tabular import cell

__all__ = ["SCHEMA", "Document", "csv_text", "json_schema", "json_text", "jsonl", "table"]

SCHEMA = "counterpoint.runs/1"

_TIMES = ("started_at", "ended_at", "received_at")
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
ID, SHORT_ID, NARROW = 32, 14, 100
"""Characters of an id in the table, and in one of fewer than `NARROW` columns; a trace id has 32. The other
forms have all of it."""
_VERDICTS = {True: "right", False: "wrong", None: "ungraded"}


class Document(Struct, frozen=True):
    """What `json_text` writes."""

    schema: Literal["counterpoint.runs/1"]
    runs: list[Run]
    total: int
    """Runs that match, also those that are not shown."""
    systems: list[str]
    """Every system of the store."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `json_text`; a line of `jsonl` is one of its ``runs``."""
    schema = msgspec.json.schema(Document)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema


def json_text(page: Runs, *, keep_secrets: bool = False) -> str:
    """The runs, how many match in all, and every system of the store."""
    document = {
        "schema": SCHEMA,
        "runs": [_record(run, keep_secrets) for run in page.rows],
        "total": page.total,
        "systems": plain(page, keep_secrets=keep_secrets)["systems"],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def jsonl(page: Runs, *, keep_secrets: bool = False) -> str:
    """One run a line."""
    return "".join(json.dumps(_record(run, keep_secrets), ensure_ascii=False) + "\n" for run in page.rows)


def csv_text(page: Runs, *, keep_secrets: bool = False) -> str:
    """One run a line; a column ``values.METRIC`` for each that there is; undefined is an empty cell."""
    metrics = list(dict.fromkeys(name for run in page.rows for name in run.values))
    columns = [name for name in Run.__struct_fields__ if name != "values"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*columns, *(f"values.{name}" for name in metrics)])
    for run in page.rows:
        record = _record(run, keep_secrets)
        values = [record["values"].get(name) for name in metrics]
        writer.writerow([cell(value) for value in [*(record[column] for column in columns), *values]])
    return out.getvalue()


def table(
    runs: Sequence[Run], metrics: Sequence[str], *, width: int = 120, keep_secrets: bool = False
) -> Table:
    """A line a run, with the values of ``metrics``, for a terminal of so many columns."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    drawn.add_column("run", no_wrap=True)
    drawn.add_column("received", no_wrap=True)
    drawn.add_column("system", min_width=6)
    drawn.add_column("task", min_width=8)
    drawn.add_column("result", no_wrap=True)
    sizes = [name for name in ("steps", "spans") if any(getattr(run, name) for run in runs)]
    for name in (*sizes, *(f"{_line(metric, 40)} {arrow(metric)}".strip() for metric in metrics)):
        drawn.add_column(Text(name), justify="right", no_wrap=True)
    for run in runs:
        record = _record(run, keep_secrets)
        cells = (
            _line(record["id"], ID if width >= NARROW else SHORT_ID),
            datetime.fromtimestamp(run.received_at).strftime("%d %b %H:%M"),
            _line(record["system"], 24),
            _line(record["task"], 40),
            _VERDICTS[run.correct] if run.state == "scored" else run.state,
            *(str(getattr(run, name) or "") for name in sizes),
            *(number(run.values.get(name), name) for name in metrics),
        )
        drawn.add_row(*(Text(text, no_wrap=True, overflow="ellipsis") for text in cells))
    return drawn


def _record(run: Run, keep_secrets: bool) -> dict[str, Any]:
    return {**plain(run, keep_secrets=keep_secrets), **{name: getattr(run, name) for name in _TIMES}}


def _line(text: str, most: int) -> str:
    """One line of at most so many characters, without signs that a terminal would obey."""
    line = _HIDDEN.sub("", " ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
