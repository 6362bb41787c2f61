"""Gold answers beside the traces: a JSONL or CSV file with ``trace`` or ``task``, and ``gold``.

``trace`` is a trace id; ``task`` is a task id or the exact task text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterpoint.errors import UsageError
from counterpoint.json_text import parse_json

__all__ = ["read_gold"]


def read_gold(path: str | Path) -> dict[str, str]:
    """{trace id, task id or task text: gold answer} from ``path``; a UsageError names a faulty record."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: the gold file could not be read: {error}") from None
    gold: dict[str, str] = {}
    records = _csv(text) if str(path).lower().endswith(".csv") else _jsonl(text, path)
    for number, record in records:
        key = record.get("trace") or record.get("task")
        answer = record.get("gold")
        if key in (None, "") or answer in (None, ""):
            found = ", ".join(str(name) for name in record) or "nothing"
            raise UsageError(f'{path}: record {number}: needs "trace" or "task", and "gold" (found: {found})')
        gold[str(key)] = _text(answer)
    if not gold:
        raise UsageError(f"{path}: the gold file holds no record")
    return gold


def _text(answer: Any) -> str:
    return str(int(answer)) if isinstance(answer, float) and answer.is_integer() else str(answer)


def _csv(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from enumerate(csv.DictReader(io.StringIO(text, newline="")), 1)


def _jsonl(text: str, path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record, _ = parse_json(line)
        except ValueError as error:
            raise UsageError(f"{path}: line {number} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise UsageError(f"{path}: line {number} is not a JSON object")
        yield number, record
