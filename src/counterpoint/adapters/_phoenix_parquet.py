"""Rows of Phoenix's data frame of spans, in the shape of its JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._source import Record
from counterpoint.contracts import Source
from counterpoint.errors import MissingExtra, TraceError

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtra("Parquet", "parquet") from error

__all__ = ["rows"]

_BATCH = 1024


def rows(source: Source) -> Iterator[Record | TraceError]:
    """Every row as a span object; a TraceError where the file cannot be read on."""
    number = 0
    with source.open() as stream:
        try:
            for batch in pq.ParquetFile(stream).iter_batches(batch_size=_BATCH):
                for row in _with_plain_times(batch).to_pylist():
                    number += 1
                    yield Record(number, _object(row), [])
        except pa.ArrowException as error:
            yield TraceError(f"the Parquet file cannot be read: {error}", source=source.name)


def _with_plain_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Times as nanoseconds: datetime has no room for them."""
    columns = [
        column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _object(row: dict[str, Any]) -> dict[str, Any]:
    item: dict[str, Any] = {"context": {}, "attributes": {}}
    for column, value in row.items():
        head, dot, key = column.partition(".")
        if dot and head in item:
            if value is not None:
                item[head][key] = value
        else:
            item[column] = value
    return item
