"""Traces that belong to one run, joined: several files, or several trace ids, with one session or group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from counterpoint.trace import Step, Trace

__all__ = ["join"]


def join(traces: Iterable[Trace], label: str) -> Iterator[Trace]:
    """One trace for all with the same ``labels[label]``, in order of first appearance.

    Its id is the label's value, its steps are merged by time, and its rounds are derived anew. Steps
    without a time stay behind the step before them; a part without any time follows the parts before it.
    Traces without the label, and those that share its value with none, stay as they are.
    """
    groups: dict[Any, list[Trace]] = {}
    for trace in traces:
        value = trace.labels.get(label)
        # Lists and objects are no group; a key that equals no label's text keeps such a trace apart.
        key = str(value) if isinstance(value, str | int | float) else object()
        groups.setdefault(key, []).append(trace)
    for key, parts in groups.items():
        yield parts[0] if len(parts) == 1 else _merged(str(key), parts)


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
    return replace(
        first,
        id=id,
        steps=tuple(step for _, step in timed),
        task=next((part.task for part in parts if part.task), ""),
        gold=next((part.gold for part in parts if part.gold is not None), None),
        correct=next((part.correct for part in parts if part.correct is not None), None),
        answer=next((part.answer for part in reversed(parts) if part.answer is not None), last.answer),
        labels={key: value for part in reversed(parts) for key, value in part.labels.items()},
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
