"""The waist: a Trace is what a team said, step by step, and how each step's text reached the others.

Adapters and the runtime produce traces; graph, metrics and views consume them and know nothing else.

Conventions
-----------
* ``steps`` are in time order; a step hears earlier steps only.
* One step is one turn of one agent, its model calls and tool calls merged. A turn that calls another
  agent is two steps: up to the call, and from the return.
* Times are seconds since the epoch, tokens are counts, money is US dollars; None is unknown, never 0.
* A round is as recorded, or derived by `tidy`; a transfer is ``within`` a round iff both steps share it.

The native file format is JSONL, one trace a line::

    {"schema": "counterpoint.trace/1", "id": "q1", "task": "2+2?", "gold": "4", "steps": [
       {"id": "s1", "agent": "solver", "text": "The answer is 4."},
       {"id": "s2", "agent": "critic", "text": "Agreed: 4.", "heard": [{"source": "s1"}]}]}

Required are ``id`` and ``steps`` with ``id``, ``agent`` and ``text``; all else may be left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from counterpoint.errors import TraceError
from counterpoint.json_text import mend
from counterpoint.secrets import mask_value

__all__ = [
    "EVIDENCE",
    "SCHEMA",
    "Call",
    "Evidence",
    "Kind",
    "Step",
    "Trace",
    "Transfer",
    "Usage",
    "decode",
    "encode",
    "json_schema",
    "seed",
    "select_agents",
    "task_id",
    "tidy",
]

SCHEMA = "counterpoint.trace/1"

Scope = Literal["within", "across"]
Evidence = Literal["explicit", "call", "context", "broadcast", "nesting", "sequence"]
Kind = Literal["task", "agent", "tool", "control", "decision"]

EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)
"""How a transfer is known, strongest first: link or handoff, call and return, text found in the reader's
prompt, shared chat, nesting of spans, mere order."""


class Transfer(Struct, frozen=True, omit_defaults=True):
    """How an earlier step's text reached this step."""

    source: str
    """Id of the earlier step."""
    scope: Scope = "within"
    """``within``: same round (spatial); ``across``: an earlier round (temporal). Kept true by `tidy`."""
    evidence: Evidence = "explicit"
    """How the transfer is known; the strongest way where there are several."""


class Call(Struct, frozen=True, omit_defaults=True):
    """One tool call made within a step."""

    id: str
    tool: str
    arguments: str = ""
    """JSON text, as sent."""
    result: str | None = None
    error: str | None = None
    started_at: float | None = None
    ended_at: float | None = None


class Usage(Struct, frozen=True, omit_defaults=True):
    """What a step's model calls used; leaf calls only, so that sums over steps count nothing twice."""

    tokens_in: int | None = None
    """Prompt tokens, cached ones included."""
    tokens_out: int | None = None
    """Completion tokens, reasoning included."""
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    cost_usd: float | None = None
    """As recorded; the metric ``cost_usd`` prices it from the model's name where it is None."""
    model: str | None = None


class Step(Struct, frozen=True, omit_defaults=True):
    """One turn of one agent."""

    id: str
    agent: str
    text: str
    kind: Kind = "agent"
    """``task``: given by the user; ``tool``: runs code, is no model; ``control``: routes and hands no text
    on; ``decision``: gives the team's answer and is not one of its agents."""
    role: str = ""
    prompt: str | None = None
    """All that the agent was shown, where it is known."""
    round: int | None = None
    heard: tuple[Transfer, ...] = ()
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    """The answer that this step commits to, as extracted by the benchmark or recorded by the system."""
    started_at: float | None = None
    ended_at: float | None = None
    usage: Usage | None = None
    error: str | None = None


class Trace(Struct, frozen=True, omit_defaults=True):
    """One run of one team on one task."""

    id: str
    steps: tuple[Step, ...]
    task: str = ""
    gold: str | None = None
    answer: str | None = None
    correct: bool | None = None
    benchmark: str | None = None
    system: str = ""
    """Which team this is: rows are folded by it."""
    source: str = ""
    """Where the trace was read from and in which format."""
    labels: Mapping[str, Any] = {}
    """Whatever else the format says: task_id, seed, failure labels, models."""
    warnings: tuple[str, ...] = ()


def task_id(trace: Trace) -> str:
    """The task that pairs traces across runs: ``labels["task_id"]``, else a hash of the task text.

    A trace without task text is its own task (``trace:<id>``) and is paired with nothing.
    """
    label = trace.labels.get("task_id")
    if label is not None and str(label):
        return str(label)
    if trace.task.strip():
        return hashlib.sha256(trace.task.encode("utf-8", "replace")).hexdigest()[:16]
    return f"trace:{trace.id}"


def seed(trace: Trace) -> str:
    """``labels["seed"]`` as text, else an empty string."""
    value = trace.labels.get("seed")
    return "" if value is None else str(value)


def failed_calls(trace: Trace) -> dict[str, int]:
    """How many model calls of `counterpoint run` gave no reply, and of how many; empty where none failed.

    What such a discussion shows is the outage: it is not scored.
    """
    failed, calls = trace.labels.get("failed_calls"), trace.labels.get("calls")
    if not (isinstance(failed, int) and isinstance(calls, int) and 0 < failed <= calls):
        return {}
    return {"failed_calls": failed, "calls": calls}


def select_agents(
    trace: Trace, *, exclude: Iterable[str] = (), rename: Mapping[str, str] | None = None
) -> Trace:
    """The trace without the steps of ``exclude`` and with agents renamed; names are matched exactly.

    Two agents that get one name become one agent. Transfers from excluded steps go with them.
    """
    dropped, names = set(exclude), rename or {}
    if not dropped and not names:
        return trace
    gone = {step.id for step in trace.steps if step.agent in dropped}
    steps = tuple(
        replace(
            step,
            agent=names.get(step.agent, step.agent),
            heard=tuple(transfer for transfer in step.heard if transfer.source not in gone),
        )
        for step in trace.steps
        if step.id not in gone
    )
    return replace(trace, steps=steps)


def tidy(trace: Trace) -> Trace:
    """The trace with its repairable faults mended and every round and scope filled in.

    * A second step of the same id is renamed ``id~2``; later transfers mean the latest step of that id.
    * A transfer from an unknown, later or same step, or from a higher round, is dropped with a warning.
    * Several transfers from one source become one, with the strongest evidence.
    * Round of a step that records none: ``max(own previous round + 1, rounds of all steps heard)``,
      0 if neither. Own previous turns are those of kind agent and decision; other kinds only hear.
    * A transfer is ``within`` iff both rounds are equal, else ``across``.

    Idempotent: tidying twice changes nothing more.
    """
    warnings = list(trace.warnings)
    later = {step.id for step in trace.steps}
    latest: dict[str, str] = {}
    rounds: dict[str, int] = {}
    own: dict[str, int] = {}
    steps: list[Step] = []
    for step in trace.steps:
        name = step.id
        if name in latest:
            count = 2
            while f"{step.id}~{count}" in rounds or f"{step.id}~{count}" in later:
                count += 1
            name = f"{step.id}~{count}"
            warnings.append(f"step id {step.id!r} stands twice: the later one is now {name!r}")
        heard = _known_transfers(step, latest, later, warnings)
        speaks = step.kind in ("agent", "decision")
        if step.round is None:
            turn = max((rounds[transfer.source] for transfer in heard), default=0)
            if speaks and step.agent in own:
                turn = max(turn, own[step.agent] + 1)
        else:
            turn = step.round
        kept = []
        for transfer in heard:
            if rounds[transfer.source] > turn:
                warnings.append(
                    f"step {name!r} of round {turn} cannot hear {transfer.source!r} "
                    f"of round {rounds[transfer.source]}: transfer dropped"
                )
                continue
            scope: Scope = "within" if rounds[transfer.source] == turn else "across"
            kept.append(transfer if transfer.scope == scope else replace(transfer, scope=scope))
        latest[step.id] = name
        rounds[name] = turn
        if speaks:
            own[step.agent] = turn
        if name != step.id or turn != step.round or tuple(kept) != step.heard:
            step = replace(step, id=name, round=turn, heard=tuple(kept))
        steps.append(step)
    return replace(trace, steps=tuple(steps), warnings=tuple(dict.fromkeys(warnings)))


def _known_transfers(
    step: Step, latest: Mapping[str, str], later: set[str], warnings: list[str]
) -> list[Transfer]:
    """Transfers of ``step`` from earlier steps, one a source, in order of first mention."""
    best: dict[str, Transfer] = {}
    for transfer in step.heard:
        source = latest.get(transfer.source)
        if source is None:
            why = "later than it" if transfer.source in later else "not in the trace"
            warnings.append(f"step {step.id!r} hears {transfer.source!r}, which is {why}: transfer dropped")
            continue
        if source != transfer.source:
            transfer = replace(transfer, source=source)
        known = best.get(source)
        if known is None or _rank(transfer) < _rank(known):
            best[source] = transfer
    return list(best.values())


def _rank(transfer: Transfer) -> int:
    return EVIDENCE.index(transfer.evidence)


# --- native JSON ---------------------------------------------------------------------------------

_KEYS = {
    "trace": {*Trace.__struct_fields__, "schema"},
    "step": set(Step.__struct_fields__),
}


def decode(record: Any, *, source: str = "", number: int | None = None) -> Trace:
    """A native record (parsed JSON) to a tidy Trace; raises TraceError naming what is missing or wrong."""

    def fail(message: str) -> TraceError:
        return TraceError(message, source=source, record=number)

    if not isinstance(record, dict):
        raise fail(f"a trace is a JSON object, found {type(record).__name__}")
    written = record.get("schema", SCHEMA)
    if written != SCHEMA:
        raise fail(f"schema {written!r} is not {SCHEMA!r}: written by another version of counterpoint?")
    for key in ("id", "steps"):
        if key not in record:
            raise fail(f'a native trace has no "{key}" (found: {_keys(record)})')
    if not isinstance(record["steps"], list):
        raise fail(f'"steps" is a list of steps, found {type(record["steps"]).__name__}')
    warnings: list[str] = []
    if unknown := sorted(set(record) - _KEYS["trace"]):
        warnings.append(f"unknown keys of the trace were left out: {', '.join(unknown)}")
    steps = [_plain_step(step, index, fail) for index, step in enumerate(record["steps"], 1)]
    if unknown := sorted({key for step in steps for key in step} - _KEYS["step"]):
        warnings.append(f"unknown keys of steps were left out: {', '.join(unknown)}")
    plain = {**record, "id": str(record["id"]), "steps": steps}
    if plain.get("gold") is not None:
        plain["gold"] = str(plain["gold"])
    if plain.get("answer") is not None:
        plain["answer"] = str(plain["answer"])
    for key in [key for key, value in plain.items() if value is None and key not in _NULLABLE]:
        del plain[key]
    try:
        trace = msgspec.convert(plain, Trace)
    except msgspec.ValidationError as error:
        raise fail(f"not a native trace: {_from_one(str(error))}") from None
    return tidy(replace(trace, warnings=(*trace.warnings, *warnings)))


_NULLABLE = {"gold", "answer", "correct", "benchmark"}


def _plain_step(step: Any, index: int, fail: Any) -> dict[str, Any]:
    if not isinstance(step, dict):
        raise fail(f"step {index} is not a JSON object but {type(step).__name__}")
    for key in ("id", "agent", "text"):
        if key not in step:
            hint = ". A chat list? Try --from chat" if {"content", "role"} & set(step) else ""
            raise fail(f'step {index} has no "{key}" (found: {_keys(step)}){hint}')
    plain = {key: value for key, value in step.items() if value is not None}
    plain["id"], plain["text"] = str(step["id"]), "" if step["text"] is None else step["text"]
    if plain.get("answer") is not None:
        plain["answer"] = str(plain["answer"])
    if isinstance(plain.get("heard"), list):
        plain["heard"] = [{"source": item} if isinstance(item, str) else item for item in plain["heard"]]
    return plain


def _keys(record: Mapping[str, Any]) -> str:
    return ", ".join(str(key)[:40] for key in list(record)[:8]) or "nothing"


def _from_one(message: str) -> str:
    """msgspec's path ``$.steps[3].round`` with steps counted from 1, as everywhere in messages."""
    head, bracket, tail = message.partition("$.steps[")
    if not bracket:
        return message
    number, _, rest = tail.partition("]")
    if not number.isdigit():
        return message
    return f"{head}step {int(number) + 1}{rest}".replace("`step", "step").rstrip("`")


def encode(trace: Trace, *, keep_secrets: bool = False) -> bytes:
    """One line of native JSONL, without the newline; values that look like keys are masked."""
    plain = msgspec.to_builtins(trace)
    if not keep_secrets:
        plain = mask_value("", plain)
    try:
        return msgspec.json.encode({"schema": SCHEMA, **plain})
    except UnicodeEncodeError:
        return msgspec.json.encode({"schema": SCHEMA, **mend(plain, set())})


def json_schema() -> dict[str, Any]:
    """The JSON Schema of one native line."""
    schema = msgspec.json.schema(Trace)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    properties = schema["$defs"]["Trace"]["properties"]
    properties["schema"] = {"const": SCHEMA, "default": SCHEMA}
    return schema
