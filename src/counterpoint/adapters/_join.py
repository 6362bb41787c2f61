"""Traces that belong to one run, joined: several files, or several trace ids, with one session or group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._transfers import Message, Turn, add_context
from counterpoint.trace import Step, Trace, Transfer

__all__ = ["join"]


def join(traces: Iterable[Trace], label: str, unlabeled: list[str] | None = None) -> Iterator[Trace]:
    """One trace for all with the same ``labels[label]``, in order of first appearance.

    Its id is the label's value, its steps are merged by time, and its rounds are derived anew. Steps
    without a time stay behind the step before them; a part without any time follows the parts before it.
    A text of one part that stands in a prompt of another is a ``context`` transfer. Counts among the labels
    are summed. Traces without the label, and those that share its value with none, stay as they are; where
    the label is on no trace at all, ``unlabeled`` gets a note.
    """
    groups: dict[Any, list[Trace]] = {}
    labeled = False
    for trace in traces:
        value = trace.labels.get(label)
        # Lists and objects are no group; a key that equals no label's text keeps such a trace apart.
        usable = isinstance(value, str | int | float)
        labeled = labeled or usable
        groups.setdefault(str(value) if usable else object(), []).append(trace)
    if groups and not labeled and unlabeled is not None:
        unlabeled.append(f"--group-by {label}: no trace has this label, so that nothing was joined")
    for key, parts in groups.items():
        yield parts[0] if len(parts) == 1 else _merged(str(key), _by_time(parts))


def _by_time(parts: list[Trace]) -> list[Trace]:
    """The parts in order of their first times; one without any time stays behind the part before it."""
    keys: list[float] = []
    for part in parts:
        times = [time for step in part.steps if (time := _time(step)) is not None]
        keys.append(min(times, default=keys[-1] if keys else -math.inf))
    return [parts[number] for number in sorted(range(len(parts)), key=keys.__getitem__)]


def _merged(id: str, parts: list[Trace]) -> Trace:
    timed: list[tuple[float, Step]] = []
    latest = -math.inf
    for number, part in enumerate(parts, 1):
        now = -math.inf if any(_time(step) is not None for step in part.steps) else latest
        for step in part.steps:
            now = max(now, _time(step) or now)
            timed.append((now, _renamed(step, number)))
        latest = max(latest, now)
    timed.sort(key=lambda pair: pair[0])
    first, last = parts[0], parts[-1]
    task = next((part.task for part in parts if part.task), "")
    return replace(
        first,
        id=id,
        steps=_with_context([step for _, step in timed], task),
        task=task,
        gold=next((part.gold for part in parts if part.gold is not None), None),
        correct=next((part.correct for part in reversed(parts) if part.correct is not None), None),
        answer=next((part.answer for part in reversed(parts) if part.answer is not None), last.answer),
        labels=_labels([part.labels for part in parts]),
        warnings=tuple(warning for part in parts for warning in part.warnings),
    )


def _time(step: Step) -> float | None:
    return step.started_at if step.started_at is not None else step.ended_at


def _renamed(step: Step, part: int) -> Step:
    """The step with ids that no other part has, and its round left open."""
    return replace(
        step,
        id=f"{part}:{step.id}",
        round=None,
        heard=tuple(replace(transfer, source=f"{part}:{transfer.source}") for transfer in step.heard),
    )


# --- transfers between the parts -----------------------------------------------------------------


def _with_context(steps: list[Step], task: str) -> tuple[Step, ...]:
    """The steps with what their prompts show of other parts; each part knows its own transfers best."""
    own: dict[str, str] = {}
    turns = []
    for step in steps:
        turn = Turn(step.id, step.agent, step.text, step.kind)
        if step.prompt:
            turn.shown = [_messages(step.prompt, own.get(step.agent, ""))]
        if step.text.strip() and step.kind != "control":
            own[step.agent] = step.text.strip()
        turns.append(turn)
    add_context(turns, given=[task] if task else [])
    found = []
    for step, turn in zip(steps, turns, strict=True):
        part = step.id.partition(":")[0]
        across = [source for source in turn.heard if source.partition(":")[0] != part]
        heard = (*step.heard, *(Transfer(source, evidence="context") for source in across))
        found.append(replace(step, heard=heard) if across else step)
    return tuple(found)


def _messages(prompt: str, own: str) -> list[Message]:
    """The prompt as messages: cut at the reader's own last text, where that is a paragraph of it.

    The borders of the other messages are not known any more, nor needed to find a longer text.
    """
    before, found, after = f"\n\n{prompt}\n\n".rpartition(f"\n\n{own}\n\n") if own else ("", "", prompt)
    if not found:
        return [Message(prompt)]
    return [Message(before, "user"), Message(own, "assistant"), Message(after, "user")]


# --- labels --------------------------------------------------------------------------------------

_COUNTS = ("run_usage", "spans", "orphans", "running", "totals_left_out", "identity_rules")
"""Labels that count something in their part; of the others the earliest part's value holds."""


def _labels(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    labels = {key: value for part in reversed(parts) for key, value in part.items()}
    for key in _COUNTS:
        counts = [part[key] for part in parts if key in part]
        if counts and all(isinstance(count, Mapping) for count in counts):
            total: Counter[str] = Counter()
            for count in counts:
                total.update({name: number for name, number in count.items() if _is_number(number)})
            labels[key] = {**labels[key], **total}
        elif counts and all(_is_number(count) for count in counts):
            labels[key] = sum(counts)
    return labels


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
