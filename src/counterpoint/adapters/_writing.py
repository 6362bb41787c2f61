"""`write`: traces to native JSONL or Parquet; a file is there whole or not at all."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import IO

from counterpoint.errors import UsageError
from counterpoint.trace import Trace, encode

__all__ = ["write"]


def write(traces: Iterable[Trace], path: str | os.PathLike[str], *, keep_secrets: bool = False) -> int:
    """Writes traces in the native format and returns how many.

    Parameters
    ----------
    path : ``.jsonl``, ``.jsonl.gz`` or ``.parquet``; ``"-"`` is standard output (JSONL). A file appears under
        this name once it is complete, and an old one stays until then.
    keep_secrets : leave values that look like keys as they are.

    Raises
    ------
    UsageError
        for another ending, or where the file cannot be written.
    MissingExtra
        for Parquet without its packages.
    """
    name = os.fspath(path)
    if isinstance(traces, Trace):
        traces = [traces]
    if name == "-":
        return _jsonl(traces, sys.stdout.buffer, keep_secrets)
    put = _format(name)
    try:
        with _whole(name) as file:
            return put(traces, file, keep_secrets)
    except OSError as error:
        raise UsageError(f"{name}: cannot be written: {error.strerror or error}") from error


def _format(name: str) -> Callable[[Iterable[Trace], IO[bytes], bool], int]:
    if name.endswith(".parquet"):
        from counterpoint.adapters import _parquet

        return _parquet.write
    if name.endswith((".jsonl.gz", ".ndjson.gz")):
        return _jsonl_gz
    if name.endswith((".jsonl", ".ndjson")) or (os.path.exists(name) and not os.path.isfile(name)):
        return _jsonl
    raise UsageError(f"{name}: traces are written to .jsonl, .jsonl.gz or .parquet, or to - (stdout)")


def _jsonl(traces: Iterable[Trace], file: IO[bytes], keep_secrets: bool) -> int:
    count = 0
    for trace in traces:
        file.write(encode(trace, keep_secrets=keep_secrets) + b"\n")
        count += 1
    file.flush()
    return count


def _jsonl_gz(traces: Iterable[Trace], file: IO[bytes], keep_secrets: bool) -> int:
    # Without name and time in the header, the same traces give the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as zipped:
        return _jsonl(traces, zipped, keep_secrets)  # type: ignore[arg-type]


@contextmanager
def _whole(name: str) -> Iterator[IO[bytes]]:
    """A file beside ``name`` that takes its place at the end; on an error it goes and ``name`` stays."""
    target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        # A pipe or a device cannot be replaced, and needs not be.
        with open(target, "wb") as file:
            yield file
        return
    folder, base = os.path.split(target)
    partial = os.path.join(folder, f".{base}.{token_hex(4)}.part")
    try:
        with open(partial, "xb") as file:
            yield file
        os.replace(partial, target)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
