"""Native traces as Parquet: a row a trace, with steps as a nested column.

Columns are the fields of Trace; ``labels`` is JSON text, for its values are of any type. Null is what JSONL
leaves out. The name of the schema stands in the file's metadata, so that `native` knows the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any

import msgspec

from counterpoint.contracts import Source
from counterpoint.errors import MissingExtra, TraceError
from counterpoint.trace import SCHEMA, Trace, decode, encode

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtra("Parquet", "parquet") from error

__all__ = ["read", "write"]

_BATCH = 256
"""Traces that are held at once."""

_CALL = pa.struct(
    [(name, pa.string()) for name in ("id", "tool", "arguments", "result", "error")]
    + [(name, pa.float64()) for name in ("started_at", "ended_at")]
)
_USAGE = pa.struct(
    [(name, pa.int64()) for name in ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning")]
    + [("cost_usd", pa.float64()), ("model", pa.string())]
)
_STEP = pa.struct(
    [(name, pa.string()) for name in ("id", "agent", "text", "kind", "role", "prompt")]
    + [("round", pa.int64())]
    + [("heard", pa.list_(pa.struct([(name, pa.string()) for name in ("source", "scope", "evidence")])))]
    + [("calls", pa.list_(_CALL)), ("answer", pa.string())]
    + [("started_at", pa.float64()), ("ended_at", pa.float64()), ("usage", _USAGE), ("error", pa.string())]
)
_TRACE = pa.schema(
    [("id", pa.string()), ("steps", pa.list_(_STEP))]
    + [(name, pa.string()) for name in ("task", "gold", "answer")]
    + [("correct", pa.bool_())]
    + [(name, pa.string()) for name in ("benchmark", "system", "source", "labels")]
    + [("warnings", pa.list_(pa.string()))],
    metadata={"schema": SCHEMA},
)


def write(traces: Iterable[Trace], file: IO[bytes], keep_secrets: bool) -> int:
    """Writes traces to ``file`` and returns how many."""
    rows = (_row(trace, keep_secrets) for trace in traces)
    count = 0
    with pq.ParquetWriter(file, _TRACE) as writer:
        while batch := list(islice(rows, _BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema=_TRACE))
            count += len(batch)
    return count


def _row(trace: Trace, keep_secrets: bool) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.json.decode(encode(trace, keep_secrets=keep_secrets))
    if "labels" in row:
        row["labels"] = msgspec.json.encode(row["labels"]).decode()
    return row


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every row of a file that `write` wrote."""
    with source.open() as stream:
        try:
            batches = pq.ParquetFile(stream).iter_batches(batch_size=_BATCH)
            rows = (row for batch in batches for row in batch.to_pylist())
            for number, row in enumerate(rows, 1):
                yield _trace(row, source.name, number)
        except pa.ArrowException as error:
            yield TraceError(f"the Parquet file cannot be read: {error}", source=source.name)


def _trace(row: dict[str, Any], name: str, number: int) -> Trace | TraceError:
    record = _without_nulls(row)
    if isinstance(record.get("labels"), str):
        record["labels"] = msgspec.json.decode(record["labels"])
    try:
        return decode(record, source=name, number=number)
    except TraceError as error:
        return error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
