"""What goes in and what comes out: spans, runs, and the text forms of traces, rows and claims.

Conventions
-----------
* Text is stored as any database tool can read it: lone surrogates become U+FFFD.
* Values that look like keys are masked before they are written, unless the store keeps secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from counterpoint.score import Row
from counterpoint.scores import plain
from counterpoint.secrets import mask_value
from counterpoint.trace import Trace, encode

__all__ = [
    "STATES",
    "Kept",
    "Run",
    "Runs",
    "Span",
    "Summary",
    "clean",
    "kept",
    "read_claim",
    "read_row",
    "searched",
    "summarize",
    "task_or_name",
]

State = Literal["receiving", "waiting", "scored", "unreadable"]
STATES: tuple[State, ...] = ("receiving", "waiting", "scored", "unreadable")

_GRADES = {1.0: True, 0.0: False, None: None}
SHOWN = 2000
"""Characters of a task or answer that the list of runs holds; the trace has all of them."""


class Span(NamedTuple):
    """One span as it came, and what is needed to find it."""

    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits."""
    envelope: bytes
    """Protobuf ResourceSpans: the resource and one ScopeSpans (scope, schema URLs) without spans."""
    payload: bytes
    """Protobuf Span."""
    links: tuple[str, ...] = ()
    """Ids of other traces that this span links to."""
    name: str = ""
    start_ns: int = 0


class Run(Struct, frozen=True):
    """One run of a team, as the list shows it."""

    id: str
    """Trace id of the run, of the first of its joined traces; of a file the trace's id, made unique."""
    origin: str
    """``otlp``, or the file it was added from."""
    system: str
    task: str
    """Its first 2,000 characters, as of ``answer``; of a run without a task its name."""
    agents: tuple[str, ...]
    answer: str | None
    correct: bool | None
    started_at: float | None
    ended_at: float | None
    received_at: float
    """When its first span came in."""
    spans: int
    steps: int
    traces: int
    """Trace ids that spans and links join into this run."""
    revision: int
    """Grows with every new or changed span."""
    scored_revision: int
    """The revision that its traces and scores belong to; 0: none yet."""
    error: str
    """Why it could not be read or scored; empty where it could."""
    values: Mapping[str, float | None]
    """Metric text to value: the mean over the run's traces; None where it is undefined."""
    state: State
    """Receiving: spans come. Waiting: none came for `listing.QUIET_S` seconds, and it is not scored yet."""

    @property
    def due(self) -> bool:
        """Did spans come that are not scored yet?"""
        return self.revision > self.scored_revision


class Runs(Struct, frozen=True):
    """One page of the list."""

    rows: tuple[Run, ...]
    total: int
    """Runs that match, on all pages."""
    systems: tuple[str, ...]
    """Every system in the store."""


def clean(text: str) -> str:
    """The text without lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- what is kept of a run -----------------------------------------------------------------------


class Kept(NamedTuple):
    """Traces, rows and claims of a run, ready to be written."""

    traces: list[tuple[str, bytes]]
    """Id and native JSON."""
    rows: list[tuple[str, str, float | None, bytes]]
    """Trace, metric, value and JSON."""
    claims: list[bytes]
    summary: Summary
    error: str

    @property
    def size(self) -> int:
        """About how much memory it holds."""
        parts = [text for _, text in self.traces] + [row[-1] for row in self.rows] + self.claims
        return sum(map(len, parts))


class Summary(NamedTuple):
    """What the list and the search know of a run, from its traces."""

    system: str
    task: str
    agents: str
    """JSON list of names."""
    answer: str | None
    correct: bool | None
    started_at: float | None
    ended_at: float | None
    steps: int
    head: str
    """What a short search looks through: id, system, service, name, tasks, agents, answer; in lower case."""
    text: str
    """What a search looks through: the steps too; in lower case."""


def kept(
    traces: Sequence[Trace],
    rows: Sequence[Row],
    claims: Sequence[Mapping[str, Any]],
    error: str,
    *,
    answer: str | None = None,
    keep_secrets: bool,
) -> Kept:
    """All of it masked and as text."""
    texts = [encode(trace, keep_secrets=keep_secrets) for trace in traces]
    plain_rows = [plain(row, keep_secrets=keep_secrets) for row in rows]
    return Kept(
        [(_written(trace.id, keep_secrets), text) for trace, text in zip(traces, texts, strict=True)],
        [(row["trace"], row["metric"], row["value"], msgspec.json.encode(row)) for row in plain_rows],
        [msgspec.json.encode(_written(claim, keep_secrets)) for claim in claims],
        summarize(
            [msgspec.json.decode(text, type=Trace) for text in texts],
            _accuracies(plain_rows),
            None if answer is None else str(_written(answer, keep_secrets)),
        ),
        str(_written(error, keep_secrets)),
    )


def _accuracies(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Trace to its accuracy, as graded when it was scored."""
    return {row["trace"]: row["value"] for row in rows if row["metric"].partition("(")[0] == "accuracy"}


def summarize(
    traces: Sequence[Trace], accuracies: Mapping[str, float | None], came_to: str | None = None
) -> Summary:
    """What the list and the search know of a run; texts are taken as they are, masked before.

    A run is right or wrong where all of its traces are: as they were recorded, else as they were graded. Its
    answer is the last one recorded, else ``came_to``.
    """
    steps = [step for trace in traces for step in trace.steps]
    agents = list(dict.fromkeys(step.agent for step in steps if step.kind in ("agent", "decision")))
    starts = [step.started_at for step in steps if step.started_at is not None]
    ends = [step.ended_at for step in steps if step.ended_at is not None]
    verdicts = {
        _GRADES.get(accuracies.get(trace.id)) if trace.correct is None else trace.correct for trace in traces
    }
    first = traces[0] if traces else Trace("", ())
    answer = next((trace.answer for trace in reversed(traces) if trace.answer is not None), came_to)
    named = {
        str(trace.labels[key]) for trace in traces for key in ("service.name", "run") if key in trace.labels
    }
    texts = [first.id, first.system, *sorted(named), *(trace.task for trace in traces), *agents, answer or ""]
    head = searched("\n".join(texts))
    return Summary(
        first.system,
        task_or_name(first)[:SHOWN],
        msgspec.json.encode(agents).decode(),
        None if answer is None else answer[:SHOWN],
        verdicts.pop() if len(verdicts) == 1 else None,
        min(starts, default=None),
        max(ends, default=None),
        len(steps),
        head[:SHOWN],
        "\n".join([head, *(searched(step.text) for step in steps)]),
    )


def task_or_name(trace: Trace) -> str:
    """What a run goes by: its task; where it has none the name that it was recorded under, its label ``run``.

    >>> task_or_name(Trace("5b8a", (), labels={"run": "my-run"}))
    'my-run'
    """
    return trace.task if trace.task.strip() else str(trace.labels.get("run", ""))


def searched(text: str) -> str:
    """The form in which texts are searched: lower case, without NUL, at which SQLite's functions stop."""
    return clean(text).replace("\x00", " ").lower()


def read_row(text: bytes) -> Row:
    """A row as it was written; ints beyond 2^53 are exact again."""
    row = msgspec.json.decode(text)
    row["parts"] = {
        name: int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value
        for name, value in row["parts"].items()
    }
    return msgspec.convert(row, Row)


def read_claim(text: bytes) -> dict[str, Any]:
    """A claim as it was written."""
    claim: dict[str, Any] = msgspec.json.decode(text)
    return claim


def _written(value: Any, keep_secrets: bool) -> Any:
    cleaned = _cleaned(value)
    return cleaned if keep_secrets else mask_value("", cleaned)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value
