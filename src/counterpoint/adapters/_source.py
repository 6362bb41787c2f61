"""How a file becomes records: opened, gunzipped, cut into JSON documents, within a limit of memory.

What an adapter needs of it:

* `opening`: the first JSON value of a file as far as its first 64 KiB show it, for ``sniff``;
* `each`: the records of a file, each made into a trace, and a TraceError in place of each that cannot be;
  or `records`, where a trace is made of several records.

A record is a JSON document: the whole file, or a line of it where the file is JSONL. Which of the two is
seen from the content, never from the name: there are ``.json`` files that are JSONL and the other way round.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice
from typing import IO, Any, NamedTuple, cast

from msgspec.structs import replace

from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.json_text import parse_json
from counterpoint.trace import Trace

__all__ = ["Opening", "Record", "each", "listed", "mentions", "open_source", "opening", "records", "source"]

HEAD = 64 * 1024
"""Bytes of the head and the tail that an adapter may judge a file by."""

MAX_BYTES = 256 * 2**20
"""The largest JSON document that is read, if the user sets no other limit."""

UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading a file or a compressed stream raises."""

_PIECE = 2**20
_BOM = b"\xef\xbb\xbf"
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
_CLOSER = {b"{": b"}", b"[": b"]"}


# --- opening a file ------------------------------------------------------------------------------


@contextmanager
def open_source(path: str, options: Mapping[str, Any]) -> Iterator[Source]:
    """The file at ``path`` as a Source; ``-`` is standard input.

    What cannot be opened twice (a pipe) is copied to a temporary file first, so that every adapter sees
    the same thing: a file.
    """
    if path != "-" and stat.S_ISREG(os.stat(path).st_mode):
        yield source(path, options=options)
        return
    with tempfile.TemporaryDirectory(prefix="counterpoint-") as folder:
        copy = os.path.join(folder, "input")
        with open(copy, "wb") as target:
            if path == "-":
                shutil.copyfileobj(sys.stdin.buffer, target)
            else:
                with open(path, "rb") as pipe:
                    shutil.copyfileobj(pipe, target)
        yield source(copy, name=path, options=options)


def source(
    path: str | os.PathLike[str], *, name: str = "", options: Mapping[str, Any] | None = None
) -> Source:
    """The file at ``path`` as adapters see it; ``name`` is what messages call it, if not by its path."""
    path = os.fspath(path)
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    opener = partial(_gunzip if zipped else _plain, path)
    with opener() as stream:
        head = _head(stream)
        tail = head
        if len(head) == HEAD:
            tail = b"" if zipped else _tail(stream)
    return Source(name=name or path, head=head, tail=tail, open=opener, options=options or {})


def _plain(path: str) -> IO[bytes]:
    return open(path, "rb")


def _gunzip(path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb"))


def _head(stream: IO[bytes]) -> bytes:
    """The first bytes, or as many as there are before a compressed stream breaks off."""
    head = b""
    try:
        while len(head) < HEAD and (piece := stream.read(min(1024, HEAD - len(head)))):
            head += piece
    except UNREADABLE:
        if not head:
            raise
    return head


def _tail(stream: IO[bytes]) -> bytes:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - HEAD))
    return stream.read(HEAD)


# --- the first JSON value, for sniffing ----------------------------------------------------------


class Opening(NamedTuple):
    """The first JSON value of a file, as far as its head shows it."""

    value: Any
    """A dict or list; where it is cut off, with all that stands complete before the cut. None: not JSON."""
    lines: bool
    """The file is to be read line by line: JSONL, or a document on one line."""

    @property
    def record(self) -> dict[str, Any]:
        """The value if it is an object, its first item if that is one, else an empty object."""
        value = self.value[0] if isinstance(self.value, list) and self.value else self.value
        return value if isinstance(value, dict) else {}


def opening(source: Source) -> Opening:
    """The first JSON object or array of ``source``; in time linear in the size of the head."""
    return _opening(source.head)


@lru_cache(maxsize=8)
def _opening(head: bytes) -> Opening:
    text = head.removeprefix(_BOM).lstrip()
    if text[:1] not in (b"{", b"["):
        return Opening(_first_object_line(text), True)
    line, newline, rest = text.partition(b"\n")
    value = _container(line)
    if value is not None:
        return Opening(value, True)
    # A first line that is no document is a broken record if a later line is one by itself.
    later = _first_object_line(rest) if len(line.strip()) > 2 else None
    if later is not None:
        return Opening(later, True)
    return Opening(_prefix(text), not newline)


def _first_object_line(text: bytes) -> dict[str, Any] | None:
    """The first complete line that is a JSON object by itself, among the first 100 that begin like one."""
    likely = (line for line in text.split(b"\n")[:-1] if line.startswith(b"{"))
    for line in islice(likely, 100):
        value = _container(line)
        if isinstance(value, dict):
            return value
    return None


def _container(text: bytes) -> Any:
    try:
        value, _ = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def _prefix(text: bytes) -> Any:
    """The first value of ``text``, closed where it is cut off: ``{"a": [1, {"b`` to ``{"a": [1, {}]}``."""
    closers: list[bytes] = []
    end = 0
    for match in _STRUCTURE.finditer(text):
        sign = match[0]
        if sign in _CLOSER:
            closers.append(_CLOSER[sign])
        elif sign in (b"]", b"}"):
            if closers[-1] != sign:
                break
            closers.pop()
        elif sign != b",":
            continue
        end = match.start() if sign == b"," else match.end()
        if not closers:
            break
    return _container(text[:end] + b"".join(reversed(closers)))


def mentions(source: Source, *keys: str) -> bool:
    """Does each key stand, quoted, in head or tail? For keys that may come after a long text."""
    quoted = [f'"{key}"'.encode() for key in keys]
    return all(key in source.head or key in source.tail for key in quoted)


# --- records -------------------------------------------------------------------------------------


class Record(NamedTuple):
    """One JSON document of a file."""

    number: int
    """From 1; blank lines do not count."""
    value: Any
    warnings: list[str]
    """What had to be mended to read it."""


def each(
    source: Source,
    make: Callable[[Any], Trace],
    *,
    split: Callable[[Any], Iterable[Any]] | None = None,
) -> Iterator[Trace | TraceError]:
    """Every record made into a trace; a TraceError in place of each that cannot be read or made into one.

    ``make`` raises TraceError with what is wrong; file and record are filled in here. ``split`` gives the
    runs that one document holds, where it may hold several.
    """
    number = 0
    for record in records(source):
        if isinstance(record, TraceError):
            number += 1
            yield record
            continue
        for value in split(record.value) if split else (record.value,):
            number += 1
            try:
                trace = make(value)
            except TraceError as error:
                yield TraceError(error.message, source=source.name, record=number)
            else:
                yield replace(trace, warnings=tuple(dict.fromkeys((*record.warnings, *trace.warnings))))


def listed(document: Any) -> list[Any]:
    """The entries of a list, or the one that stands there without a list."""
    return document if isinstance(document, list) else [document]


Parse = Callable[[bytes], tuple[Any, list[str]]]
"""The bytes of a document to its value and what had to be mended; ValueError on what is not JSON."""


def records(source: Source, parse: Parse = parse_json) -> Iterator[Record | TraceError]:
    """The JSON documents of ``source``, streamed where it is JSONL; a TraceError in place of a broken one."""
    limit = int(source.options.get("max_bytes", MAX_BYTES))
    problem = _not_text(source.head)
    if problem:
        yield TraceError(problem, source=source.name)
        return
    seen = opening(source)
    if seen.value is None and seen.lines:
        begins = source.head[:40].decode("utf-8", "replace").split("\n")[0]
        yield TraceError(f"the file is not JSON: it begins with {begins!r}", source=source.name)
        return
    with source.open() as stream:
        if seen.lines:
            yield from _lines(stream, source.name, limit, parse)
        else:
            yield _document(stream, source.name, limit, parse)


def _not_text(head: bytes) -> str:
    """Why a file with this head is no JSON text; empty where it may be one."""
    if not head.strip():
        return "the file is empty"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "the file is UTF-16 text: save it as UTF-8"
    if b"\0" in head:
        return "the file is binary, not JSON"
    return ""


def _document(stream: IO[bytes], name: str, limit: int, parse: Parse) -> Record | TraceError:
    if isinstance(stream, io.BufferedReader) and stream.seek(0, os.SEEK_END) > limit:
        return _too_large(name, 1, limit)
    stream.seek(0)
    text = stream.read(limit + 1)
    if len(text) > limit:
        return _too_large(name, 1, limit)
    return _parsed(text.removeprefix(_BOM), name, 1, parse)


def _lines(stream: IO[bytes], name: str, limit: int, parse: Parse) -> Iterator[Record | TraceError]:
    number = 0
    try:
        while (line := _line(stream, limit)) != b"":
            if line is None:
                number += 1
                yield _too_large(name, number, limit)
            elif text := line.removeprefix(_BOM).strip():
                number += 1
                yield _parsed(text, name, number, parse)
    except UNREADABLE as error:
        # A compressed file that was cut off: what came before is whole, and good.
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        yield TraceError(f"could not be read to its end: {reason}", source=name, record=number + 1)


def _line(stream: IO[bytes], limit: int) -> bytes | None:
    """The next line, empty at the end; None for one over the limit, which is read over and not kept."""
    parts: list[bytes] = []
    size = 0
    while piece := stream.readline(_PIECE):
        size += len(piece)
        if size > limit:
            parts.clear()
        else:
            parts.append(piece)
        if piece.endswith(b"\n"):
            break
    return b"".join(parts) if size <= limit else None


def _parsed(text: bytes, name: str, number: int, parse: Parse) -> Record | TraceError:
    try:
        value, warnings = parse(text)
    except ValueError as error:
        reason = str(error).removeprefix("JSON is ").removeprefix("malformed: ")
        if "truncated" in reason:
            reason = "it is cut off: export it again"
        return TraceError(f"not valid JSON: {reason}", source=name, record=number)
    return Record(number, value, warnings)


def _too_large(name: str, number: int, limit: int) -> TraceError:
    return TraceError(
        f"one JSON document of more than {limit:,} bytes is not read: "
        "write one run a line (JSONL), which streams, or raise --max-bytes",
        source=name,
        record=number,
    )
