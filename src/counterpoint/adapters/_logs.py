"""Logs: text files that are one run each."""

from __future__ import annotations

from counterpoint.adapters._source import MAX_BYTES
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.json_text import decode

__all__ = ["CUT_OFF", "log_text", "whole_lines"]

CUT_OFF = "the log is cut off: its last line is not complete, and was left out"


def log_text(source: Source, mended: set[str]) -> str:
    """The whole log; a TraceError where it is larger than ``--max-bytes``.

    Bytes that are not UTF-8 become U+FFFD, as everywhere; that there were any is added to ``mended``.
    """
    limit = int(source.options.get("max_bytes", MAX_BYTES))
    with source.open() as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise TraceError(f"a log of more than {limit:,} bytes is not read: raise --max-bytes", record=1)
    return decode(content, mended).replace("\r\n", "\n")


def whole_lines(text: str) -> str:
    """The log without its last line, which is not complete."""
    return text[: text.rfind("\n") + 1]
