"""Inspect: evaluation logs, as ``.eval`` (a zip of samples) or ``.json`` (one document).

::

    {"version": 2, "status": "success", "eval": {"task": "sums", "model": "openai/gpt-4o-mini", ...},
     "samples": [{"id": "s1", "epoch": 1, "input": "What is 17 + 25?", "target": "42",
       "scores": {"match": {"value": "C", "answer": "42"}}, "messages": [...], "attachments": {...},
       "events": [
         {"event": "span_begin", "id": "a1", "type": "agent", "name": "lead", "timestamp": "..."},
         {"event": "model", "span_id": "a1", "input": [...], "output": {"choices": [...], "usage": {...}}},
         {"event": "tool", "span_id": "a1", "id": "c1", "function": "search", "arguments": {...}, ...}]}]}

What counts
-----------
* A sample is a trace: its target is the gold answer, its first score says what was answered and whether
  that was right (``C``, ``I``, 1, 0), its epoch is the seed.
* An agent's span is a step; one inside a tool call is a call and its return, one inside a hand-over is
  explicit. Without agents a solver that calls the model is one. A scorer that calls a model is control.
* Logs up to spring 2025 have steps in place of spans, the oldest no events: then the messages are read.
* Reading zips of 2026 and later (zstd) takes the extra ``zstd`` on Python before 3.14.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import IO, Any

from msgspec.structs import replace

from counterpoint.adapters._inspect_events import SampleSpans
from counterpoint.adapters._messages import chats
from counterpoint.adapters._runs import Dialect, traces
from counterpoint.adapters._source import MAX_BYTES, each, opening
from counterpoint.adapters._transcript import Transcript, reading_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.json_text import parse_json
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_ZIP = b"PK\x03\x04"
_ZSTANDARD = 93
_RIGHT: Mapping[Any, bool] = {"C": True, "I": False, 1: True, 0: False}


def sniff(source: Source) -> bool:
    """A zip with a header and samples, or an object with ``eval`` and ``status``."""
    if source.head.startswith(_ZIP):
        names = (b"_journal/", b"header.json", b"samples/")
        return any(name in source.head or name in source.tail for name in names)
    record = opening(source).record
    return isinstance(record.get("eval"), dict) and {"status", "version"} <= set(record)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every sample; a TraceError in place of each that cannot be read."""
    if source.head.startswith(_ZIP):
        yield from _archive(source)
    else:
        yield from each(source, lambda item: _trace(*item, source=source.name), split=_samples)


def _samples(log: Any) -> list[tuple[Any, Mapping[str, Any]]]:
    """Each sample of a log, and the log; None for the one that it has not."""
    log = log if isinstance(log, dict) else {}
    samples = log.get("samples")
    return [(sample, log) for sample in (samples if isinstance(samples, list) and samples else [None])]


# --- zips ----------------------------------------------------------------------------------------


def _archive(source: Source) -> Iterator[Trace | TraceError]:
    limit = int(source.options.get("max_bytes", MAX_BYTES))
    with source.open() as stream:
        try:
            archive = zipfile.ZipFile(stream)
        except zipfile.BadZipFile as error:
            hint = "a run that is still going on, or was cut off, has no directory of its samples yet"
            yield TraceError(f"not a whole zip file ({error}): {hint}", source=source.name)
            return
        members = {info.filename: info for info in archive.infolist()}
        log, mended = _header(archive, stream, members, limit)
        names = [name for name in members if name.startswith("samples/") and name.endswith(".json")]
        for number, name in enumerate(names, 1):
            try:
                sample, warnings = _member(archive, stream, members[name], limit)
                trace = _trace(sample, log, source=source.name)
            except TraceError as error:
                yield TraceError(error.message, source=source.name, record=number)
            else:
                told = dict.fromkeys((*mended, *warnings, *trace.warnings))
                yield replace(trace, warnings=tuple(told))
        if not names:
            yield TraceError("no sample in the log", source=source.name)


def _header(
    archive: zipfile.ZipFile, stream: IO[bytes], members: Mapping[str, zipfile.ZipInfo], limit: int
) -> tuple[dict[str, Any], list[str]]:
    """What is known of the whole evaluation, and what was mended in it; of one that crashed, as it began."""
    for name in ("header.json", "_journal/start.json"):
        if name in members:
            with suppress(TraceError):
                header, mended = _member(archive, stream, members[name], limit)
                if isinstance(header, dict):
                    return header, mended
    return {}, []


def _member(
    archive: zipfile.ZipFile, stream: IO[bytes], info: zipfile.ZipInfo, limit: int
) -> tuple[Any, list[str]]:
    """What a member holds, and what had to be mended in it."""
    try:
        return parse_json(_content(archive, stream, info, limit))
    except (ValueError, EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        raise TraceError(f"{info.filename}: {error}") from None


def _content(archive: zipfile.ZipFile, stream: IO[bytes], info: zipfile.ZipInfo, limit: int) -> bytes:
    """The bytes of a member; zstd, which zipfile knows from Python 3.14 on, is unpacked here."""
    if info.file_size > limit:
        raise ValueError(f"more than {limit:,} bytes are not read: raise --max-bytes")
    if info.compress_type != _ZSTANDARD:
        with archive.open(info) as member:
            return member.read(limit + 1)
    stream.seek(info.header_offset)
    local = stream.read(30)
    if len(local) < 30 or not local.startswith(_ZIP):
        raise ValueError("its place in the zip file is wrong")
    name, extra = (int.from_bytes(local[at : at + 2], "little") for at in (26, 28))
    stream.seek(info.header_offset + 30 + name + extra)
    text = _unpacked(stream.read(info.compress_size), info.file_size)
    if zlib.crc32(text) != info.CRC:
        raise ValueError("its checksum is wrong: the file is damaged")
    return text


def _unpacked(packed: bytes, size: int) -> bytes:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise ValueError(
                "it is packed with zstd, for which packages are missing: pip install 'counterpoint[zstd]'"
            ) from None
    try:
        text: bytes = zstd.ZstdDecompressor().decompress(packed, max_length=size + 1)
    except zstd.ZstdError as error:
        raise ValueError(f"its zstd data are damaged: {error}") from None
    return text


# --- samples -------------------------------------------------------------------------------------


def _trace(sample: Any, log: Mapping[str, Any], *, source: str) -> Trace:
    if sample is None:
        raise TraceError("a log without samples")
    if not isinstance(sample, dict) or not {"id", "input"} <= set(sample):
        raise TraceError("not a sample of Inspect")
    found = SampleSpans(sample)
    transcript = sample.get("transcript")
    events = sample.get("events") or (transcript.get("events") if isinstance(transcript, dict) else None)
    found.add_all(events)
    facts = _facts(sample, log)
    readings = map(reading_of, found.spans)
    if any(reading is not None and reading.role == "model" for reading in readings):
        dialect = Dialect(reading_of, facts=lambda *_: {**facts})
        trace = next(traces(found.spans, dialect, source=source, format="inspect"))
        if isinstance(trace, TraceError):
            raise trace
        return trace
    return _messages(sample, log).trace(source=source, format="inspect", **facts)


def _messages(sample: Mapping[str, Any], log: Mapping[str, Any]) -> Transcript:
    """The turn of the one agent that the messages of a log without model events tell of."""
    plan = log.get("plan")
    steps = plan.get("steps") if isinstance(plan, dict) else None
    last = steps[-1] if isinstance(steps, list) and steps else None
    transcript = Transcript()
    speaker = transcript.speaker(str(last.get("solver") if isinstance(last, dict) else "") or "solver")
    for chat in chats(sample.get("messages"), "user"):
        if chat.role == "assistant":
            speaker.say(chat)
        elif chat.answers:
            speaker.result(chat.answers, chat.text)
        else:
            speaker.hear(chat)
    speaker.done()
    return transcript


def _facts(sample: Mapping[str, Any], log: Mapping[str, Any]) -> dict[str, Any]:
    about = log.get("eval")
    about = about if isinstance(about, dict) else {}
    task = str(about.get("task") or "")
    targets = sample.get("target")
    targets = [str(target).strip() for target in (targets if isinstance(targets, list) else [targets])]
    targets = [target for target in targets if target and target != "None"]
    scores = sample.get("scores")
    scores = (
        {key: each for key, each in scores.items() if isinstance(each, dict)}
        if isinstance(scores, dict)
        else {}
    )
    first: dict[str, Any] = next(iter(scores.values()), {})
    answer, value = first.get("answer"), first.get("value")
    labels: dict[str, Any] = {
        "task_id": f"{task}/{sample['id']}" if task else str(sample["id"]),
        "seed": sample.get("epoch"),
        "model": about.get("model"),
        "run_id": about.get("run_id"),
        "scores": {key: each.get("value") for key, each in scores.items()},
        "targets": targets if len(targets) > 1 else None,
        "error": _message(sample.get("error")),
        "limit": _message(sample.get("limit")),
    }
    return {
        "system": "inspect-ai",
        "task": _text(sample["input"]),
        "gold": targets[0] if targets else None,
        "answer": answer if isinstance(answer, str) else None,
        "correct": _RIGHT.get(value) if isinstance(value, str | int | float) else None,
        "benchmark": task or None,
        "labels": {key: label for key, label in labels.items() if label not in (None, "", {})},
    }


def _text(given: Any) -> str:
    """The task: a text, or what the user says in messages."""
    found = chats(given, "user")
    asked = [chat.text for chat in found if chat.role == "user" and chat.text]
    return "\n\n".join(asked or [chat.text for chat in found if chat.text])


def _message(trouble: Any) -> str:
    """What a sample's error or limit says."""
    if isinstance(trouble, dict):
        trouble = trouble.get("message") or trouble.get("type")
    return str(trouble) if trouble else ""
