"""Scores as CSV, JSONL and Markdown.

User text is hostile: a CSV cell that a spreadsheet would run as a formula is prefixed by an apostrophe, and
Markdown's special characters are escaped.
"""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

from counterpoint.scores import Scores, Summary, plain
from counterpoint.view.table import arrow, interval_text, number, reasons

__all__ = ["cell", "csv_text", "escape_markdown", "jsonl", "markdown"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
COLUMNS = ("run", "trace", "system", "metric", "value", "reason", "parts", "detail", "signature")


def jsonl(scores: Scores, *, keep_secrets: bool = False) -> str:
    """One row a line."""
    return "".join(
        json.dumps(plain(row, keep_secrets=keep_secrets), ensure_ascii=False) + "\n" for row in scores.rows
    )


def csv_text(scores: Scores, *, keep_secrets: bool = False) -> str:
    """One row a line; parts, detail and signature as JSON text; an undefined value is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in scores.rows:
        record = plain(row, keep_secrets=keep_secrets)
        writer.writerow([cell(record[column]) for column in COLUMNS])
    return out.getvalue()


def cell(value: Any) -> Any:
    """The value as it may stand in a CSV file: no formula, no control characters, JSON for what has parts."""
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        value = _CONTROL.sub("", value)
    if isinstance(value, str) and value[:1] in "=+-@\t\r\n" and value:
        return f"'{value}"
    return "" if value is None else value


def markdown(scores: Scores, *, keep_secrets: bool = False) -> str:
    """The summary as a Markdown table: a line a system and metric; below it, why values are undefined."""
    lines = [
        "| system | metric | mean | 95 % interval | n | undefined |",
        "| --- | --- | ---: | :---: | ---: | ---: |",
    ]
    records = []
    for entry in scores.summary():
        record = Summary(**plain(entry, keep_secrets=keep_secrets))
        records.append(record)
        beside = scores.unread(entry.metric, entry.system)
        cells = (
            "**all**" if record.system is None else escape_markdown(record.system) or "(no name)",
            f"{escape_markdown(record.metric)} {arrow(record.metric)}".strip(),
            f"{number(record.mean, record.metric)} {f'({beside})' if beside else ''}".strip(),
            interval_text(record),
            str(record.n),
            str(record.undefined),
        )
        lines.append(f"| {' | '.join(cells)} |")
    told = [escape_markdown(line) for line in reasons(records)]
    return "\n\n".join(["\n".join(lines), *told]) + "\n"


def escape_markdown(text: str) -> str:
    """``text`` on one line, shown as it stands by any Markdown reader."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~])", r"\\\1", " ".join(text.split()))
