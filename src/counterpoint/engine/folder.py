"""The folder of one run: everything needed to read it, to reproduce it and to go on with it.

    config.json     what was asked for: system with prompts and wirings, benchmark, model, versions, sittings
    log.jsonl       every reply as it came in, every failure, every start and stop; append-only
    traces.jsonl    one trace a question and seed; `counterpoint score` and all other commands read it
    scores.json     the scores of the run, as `counterpoint score --format json` writes them

Conventions
-----------
* A call is looked up by its job, by what was asked (secrets masked) and by how many times the same was asked
  before in that job; so a run that goes on asks for nothing that has been paid for.
* A run goes on with the same questions, or more of them: the shorter list is the beginning of the longer.
  What is there already of more questions or seeds stays.
* Keys are written nowhere; values that look like keys are masked in every file.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from counterpoint.engine.jobs import QUESTION
from counterpoint.engine.journal import Journal
from counterpoint.errors import TraceError, UsageError
from counterpoint.runtime.play import TimedReply
from counterpoint.secrets import mask, mask_value
from counterpoint.trace import Trace, decode, encode

__all__ = ["RunFolder", "call_key"]

CONFIG, LOG, TRACES, SCORES = "config.json", "log.jsonl", "traces.jsonl", "scores.json"

FIXED = ("benchmark", "system", "team", "protocol", "model")
"""What cannot change when a run goes on: its folder holds one system on one benchmark with one model."""
SITTING = ("command", "asked", "counterpoint", "python")
"""What the config keeps of every sitting."""
REMEDIES = {
    LOG: "delete that line (a reply in it is asked for again), or name another folder",
    TRACES: f"delete this file (--resume makes it anew from {LOG}), or name another folder",
}


def call_key(messages: Sequence[Mapping[str, Any]], times: int) -> str:
    """Names a call within its job: what is asked, and how many times it was asked before."""
    text = mask(msgspec.json.encode([list(messages), times]).decode())
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class RunFolder:
    """An open run folder; one process at a time has it."""

    def __init__(self, path: Path, config: Mapping[str, Any], *, resume: bool) -> None:
        """Create the folder, or go on with it; UsageError where it holds another run."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{path}: could not be made: {error.strerror or error}") from None
        held = (path / CONFIG).exists() or _holds(path / LOG)
        if held and not resume:
            raise UsageError(
                f"{path}: holds a run already: go on with it by --resume, or name another folder"
            )
        for name in (TRACES, SCORES):
            if not held and _holds(path / name):
                raise UsageError(f"{path}: holds {name} of something else, no run: name another folder")
        before = _read_same(path / CONFIG, config) if held else {}
        self.journal = Journal(path / LOG, remedy=REMEDIES[LOG])
        self.trace_lines = self._open_traces()
        self.replies: dict[tuple[str, str], TimedReply] = {}
        self.refused: set[str] = set()
        for number, record in enumerate(self.journal.read(), 1):
            if record.get("event") == "call":
                self._recall(record, number)
            elif record.get("event") == "refused":
                self.refused.add(str(record.get("job")))
        write_json(path / CONFIG, _joined(before, config))
        self.note("resumed" if held else "started")

    def _open_traces(self) -> Journal:
        return Journal(self.path / TRACES, remedy=REMEDIES[TRACES])

    def _recall(self, record: Mapping[str, Any], number: int) -> None:
        try:
            job, call = str(record["job"]), str(record["call"])
            self.replies[job, call] = msgspec.convert(record["reply"], TimedReply)
        except (KeyError, msgspec.ValidationError) as error:
            raise self.journal.foreign(number, f"is no reply of a run ({error})") from None

    def note(self, event: str, **told: Any) -> None:
        """Add an event to the log."""
        self._append({"event": event, "at": round(time.time(), 3), **_masked(told)})

    def add_reply(self, job: str, call: str, reply: TimedReply) -> TimedReply:
        """Put a reply on the disk; what is returned has its secrets masked, as it would be read again."""
        kept = replace(
            reply,
            text=mask(_clean(reply.text)),
            model=mask(_clean(reply.model)),
            finish_reason=mask(_clean(reply.finish_reason)),
        )
        self._append({"event": "call", "job": job, "call": call, "reply": kept})
        self.replies[job, call] = kept
        return kept

    def add_refused(self, job: str) -> None:
        """Note once that the endpoint refused a call of a job, which is played last when the run goes on."""
        if job not in self.refused:
            self.refused.add(job)
            self.note("refused", job=job)

    def _append(self, record: dict[str, Any]) -> None:
        self.journal.append(msgspec.json.encode(record))

    def traces(self) -> list[Trace]:
        """The traces written so far, in the order of their coming in."""
        try:
            return [
                decode(record, source=str(self.path / TRACES), number=number)
                for number, record in enumerate(self.trace_lines.read(), 1)
            ]
        except TraceError as error:
            raise UsageError(f"{error}: {REMEDIES[TRACES]}") from None

    def add_trace(self, trace: Trace) -> None:
        """Put a trace on the disk."""
        self.trace_lines.append(encode(trace))

    def set_traces(self, traces: Iterable[Trace]) -> None:
        """Replace the traces by these, in this order, in one move."""
        self.trace_lines.close()
        _replace(self.path / TRACES, b"".join(encode(trace) + b"\n" for trace in traces))
        self.trace_lines = self._open_traces()

    def close(self) -> None:
        """Let another process have the folder."""
        self.journal.close()
        self.trace_lines.close()


def _holds(path: Path) -> bool:
    """Whether there is anything in the file, or there is something that is no file."""
    return path.exists() and not (path.is_file() and path.stat().st_size == 0)


def _read_same(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of the run in the folder; UsageError where it is not the one that is asked for."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(
            f"{path}: could not be read, so the run cannot go on: {error}: name another folder"
        ) from None
    asked = msgspec.to_builtins(_masked(config))
    for name in FIXED:
        before, now = found.get(name), asked.get(name)
        if before != now:
            raise UsageError(
                f"{path}: this run has another {name}{_difference(before, now)}: name another folder"
            )
    wirings = zip(found.get("wirings") or (), asked.get("wirings") or (), strict=False)
    if any(before != now for before, now in wirings):
        raise UsageError(f"{path}: this run has another wiring: name another folder")
    _check_questions(path, str(found.get("examples", "")), str(asked.get("examples", "")))
    return found


def _check_questions(path: Path, before: str, now: str) -> None:
    for start in range(0, min(len(before), len(now)), QUESTION):
        if before[start : start + QUESTION] != now[start : start + QUESTION]:
            raise UsageError(
                f"{path}: this run has other questions (number {start // QUESTION + 1} is another one): "
                "name another folder"
            )


def _joined(before: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of this sitting, which says of questions, seeds and sittings what the folder has in all."""
    sitting = {"at": round(time.time(), 3), **{name: config[name] for name in SITTING if name in config}}
    sittings = before.get("sittings")
    most = {
        name: max(before[name], config[name], key=_size)
        for name in ("questions", "seeds", "examples", "wirings")
        if name in before and name in config
    }
    return {**config, **most, "sittings": [*(sittings if isinstance(sittings, list) else ()), sitting]}


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple) else value if isinstance(value, int) else 0


def _difference(before: Any, now: Any) -> str:
    """The first entry that differs, in words, where it is short."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *now]:
            if before.get(key) != now.get(key):
                return f" ({key}: {_short(before.get(key))}, now {_short(now.get(key))})"
    if isinstance(before, str) and isinstance(now, str):
        return f" ({_short(before)}, now {_short(now)})"
    return ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON file, secrets masked, in one move."""
    _replace(path, msgspec.json.format(msgspec.json.encode(_masked(document)), indent=2) + b"\n")


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UsageError(f"{path}: could not be written: {error.strerror or error}") from None


def _masked(value: Any) -> Any:
    return mask_value("", _cleaned(value))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, Mapping):
        return {str(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value


def _clean(text: str) -> str:
    """The text with lone surrogates, which no file can hold, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
