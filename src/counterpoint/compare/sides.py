"""What is compared: the systems of each input, a column of values a metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from counterpoint.errors import UsageError
from counterpoint.score import Row
from counterpoint.scores import TraceInfo, unread
from counterpoint.stats.sample import Floats

__all__ = ["Scored", "Side", "check_signatures", "labels", "sides_of"]


class Scored(Protocol):
    """What `compare` takes: Scores, or anything with its rows and traces."""

    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def traces(self) -> Sequence[TraceInfo]: ...


@dataclass(frozen=True)
class Side:
    """One system of one input; equal indices mean the same trace in every field."""

    source: str
    """The input's name."""
    system: str
    traces: list[str]
    tasks: list[str]
    seeds: list[str]
    values: dict[str, Floats]
    """Metric to (traces,) values, NaN where undefined."""
    signatures: dict[str, Mapping[str, Any]]
    reasons: dict[str, dict[str, int]]
    """Metric to why it is undefined, with counts."""
    unread: str = ""
    """How many final answers could not be read, which its accuracy counts as wrong; empty where none."""
    label: str = ""
    """The name that tells it from the other sides."""

    @cached_property
    def by_task(self) -> dict[str, dict[str, list[int]]]:
        """Task to seed to the indices of its traces, by first appearance."""
        found: dict[str, dict[str, list[int]]] = {}
        for index, (task, seed) in enumerate(zip(self.tasks, self.seeds, strict=True)):
            found.setdefault(task, {}).setdefault(seed, []).append(index)
        return found

    @cached_property
    def unpaired_tasks(self) -> set[str]:
        """Tasks that stand for a trace without task text (`counterpoint.trace.task_id`)."""
        return {task for task, trace in zip(self.tasks, self.traces, strict=True) if task == f"trace:{trace}"}

    @cached_property
    def single_agent(self) -> bool:
        """Whether every trace is known to have exactly one agent."""
        agents = self.column("agents")
        return agents is not None and bool((agents == 1).all())

    @cached_property
    def tokens(self) -> Floats | None:
        """Tokens of each trace, read and written; None where either is not there."""
        read, written = self.column("tokens_in"), self.column("tokens_out")
        return None if read is None or written is None else read + written

    def column(self, name: str) -> Floats | None:
        """The values of the metric of that name, whatever its parameters."""
        return next((column for text, column in self.values.items() if text.partition("(")[0] == name), None)


def labels(inputs: Sequence[Scored], given: Sequence[str] | None) -> list[str]:
    """A name for each input: as given, else its run, else A, B, C."""
    if given is not None:
        if len(given) != len(inputs) or len(set(given)) < len(given):
            raise UsageError(f"{len(inputs)} inputs need as many different names, found {list(given)}")
        return list(given)
    runs = ["".join(dict.fromkeys(info.run for info in scores.traces)) for scores in inputs]
    letters = [chr(ord("A") + index) if index < 26 else f"input {index + 1}" for index in range(len(inputs))]
    return runs if all(runs) and len(set(runs)) == len(runs) else letters


def sides_of(scores: Scored, source: str) -> list[Side]:
    """The systems of one input, by first appearance.

    Raises
    ------
    UsageError: no traces; a row of an unknown trace; a value that is NaN or infinite.
    """
    infos = scores.traces
    if not infos:
        raise UsageError(f"{source} holds no traces: there is nothing to compare")
    columns: dict[str, Floats] = {}
    signatures: dict[str, Mapping[str, Any]] = {}
    reasons: dict[tuple[str, str], dict[str, int]] = {}
    for place, row in _placed(scores, source):
        if row.metric not in columns:
            columns[row.metric] = np.full(len(infos), math.nan)
            signatures[row.metric] = row.signature
        elif row.signature is not signatures[row.metric]:
            _agree(row.metric, signatures[row.metric], source, row.signature, source)
        if row.value is None:
            counts = reasons.setdefault((infos[place].system, row.metric), {})
            counts[row.reason] = counts.get(row.reason, 0) + 1
        elif math.isfinite(row.value):
            # As a file of scores has it: no difference is the last bit of a number that was not written down.
            columns[row.metric][place] = float(f"{row.value:.9g}")
        else:
            raise UsageError(
                f"{source}: trace {row.trace!r}: {row.metric} is {row.value}: "
                "write null and a reason where a metric is undefined"
            )
    members: dict[str, list[int]] = {}
    for place, info in enumerate(infos):
        members.setdefault(info.system, []).append(place)
    return [
        Side(
            source=source,
            system=system,
            traces=[infos[place].trace for place in places],
            tasks=[infos[place].task for place in places],
            seeds=[infos[place].seed for place in places],
            values={name: column[places] for name, column in columns.items()},
            signatures=signatures,
            reasons={name: reasons.get((system, name), {}) for name in columns},
            unread=unread(
                row
                for row in scores.rows
                if row.system == system and row.metric.partition("(")[0] == "accuracy"
            ),
        )
        for system, places in members.items()
    ]


def _placed(scores: Scored, source: str) -> Iterator[tuple[int, Row]]:
    """Each row with the index of its trace; traces of one id (nobody named them) are told apart by order."""
    places: dict[tuple[str, str], list[int]] = {}
    for index, info in enumerate(scores.traces):
        places.setdefault((info.run, info.trace), []).append(index)
    seen: dict[tuple[str, str, str], int] = {}
    for row in scores.rows:
        known = places.get((row.run, row.trace))
        if known is None:
            raise UsageError(f"{source}: a row of trace {row.trace!r}, which is not among its traces")
        if len(known) == 1:
            yield known[0], row
            continue
        key = (row.run, row.trace, row.metric)
        count = seen.get(key, 0)
        seen[key] = count + 1
        yield known[min(count, len(known) - 1)], row


def check_signatures(sides: Sequence[Side]) -> None:
    """A UsageError that names the field in which two sides made a metric's numbers differently."""
    first: dict[str, Side] = {}
    for side in sides:
        for name, signature in side.signatures.items():
            other = first.setdefault(name, side)
            _agree(name, other.signatures[name], other.source, signature, side.source)


def _agree(name: str, a: Mapping[str, Any], in_a: str, b: Mapping[str, Any], in_b: str) -> None:
    if a == b:
        return
    for field in [*a, *b]:
        if field != "run" and a.get(field) != b.get(field):
            found = f"{a.get(field)!r} in {in_a}, {b.get(field)!r} in {in_b}"
            raise UsageError(
                f"{name}: {field} differs ({found}): numbers made in different ways are not compared; "
                f"score both sides with the same {field}"
            )
