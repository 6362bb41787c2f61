"""The life of every claim: born, kept, adopted, weakened, contradicted, lost; by agent and round.

Conventions
-----------
A life joins the claims that correspond at one position, or of which the later carries the earlier, whoever
makes them. Lives are numbered in the order of their births, and never reach into another cycle.

What counts
-----------
* ``born``: the first claim of a life. ``adopted``: the first by another agent. ``kept``: any later one.
* ``weakened``: nobody carries the claim at the next position, but somebody still says a part of it.
* ``contradicted``: another agent makes a claim there or at the next position that cannot be true beside it;
  or the same one with a stance at least .75 away.
* ``lost``: the cycle goes on, and nobody carries the claim. Where judgments are missing nothing is called
  lost.

Source: ours, on the relations of RIVER.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct

from counterpoint.contracts import Context
from counterpoint.metrics.claim_metrics import discussion
from counterpoint.metrics.discussion import Discussion
from counterpoint.metrics.survival import lineages

__all__ = ["EVENTS", "Event", "ledger"]

EVENTS = ("born", "adopted", "kept", "weakened", "contradicted", "lost")

APART = 0.75
"""Stances on one claim that differ by so much contradict each other."""


class Event(Struct, frozen=True):
    """One thing that happened to one claim."""

    trace: str
    life: int
    """Number of the life, from 1."""
    event: str
    agent: str
    """Who did it; empty for ``lost``."""
    round: int
    text: str
    """The claim as made there; for ``lost`` as last made."""
    step: str = ""
    start: int = 0
    end: int = 0
    """Where it stands in the step's text; ``start == end`` where that is not known."""
    stance: float | None = None
    extension: bool | None = None
    """Whether the claim goes beyond the source; None: not known."""


def ledger(context: Context, options: Mapping[str, Any]) -> list[Event]:
    """Every event in the life of every claim of a trace: by life, then in time.

    Parameters
    ----------
    context: the trace.
    options: parameters of the claim metrics, all of them (`claim_metrics.OPTIONS`).
    """
    found = discussion(context, options)
    # Judged in one go, before anything is looked up claim by claim.
    found.stances, found.extension  # noqa: B018
    events: list[Event] = []
    lives = 0
    for number, cycle in enumerate(found.plan.cycles):
        ends_open = found.plan.private and number + 1 < len(found.plan.cycles)
        told = _Cycle(found, cycle, context.trace.id, lives, skip=cycle[-1] if ends_open else None)
        events.extend(told.events())
        lives += len(told.lives)
    return events


class _Cycle:
    """The lives of one cycle."""

    def __init__(
        self, found: Discussion, cycle: tuple[int, ...], trace: str, before: int, *, skip: int | None
    ) -> None:
        self.found, self.cycle, self.trace, self.before = found, cycle, trace, before
        self.skip = skip
        """The private position, whose claims are told once, with the last cycle."""
        self.indices = [index for position in cycle for index in found.at[position]]
        self.number = {index: at for at, index in enumerate(self.indices)}
        self.place = {position: at for at, position in enumerate(cycle, 1)}
        self.weaker: dict[int, int] = {}
        self.unknown: set[int] = set()
        links = [link for position in cycle for link in self._beside(position)]
        links += [link for pair in pairwise(cycle) for link in self._ahead(*pair)]
        positions = [self.place[found.claims[index].position] for index in self.indices]
        joined = lineages(positions, links, len(cycle))
        self.lives = [[self.indices[at] for at in life] for life in joined]

    def _beside(self, position: int) -> list[tuple[int, int]]:
        of_position, m = self.found.at[position], self.found.match(position)
        related = np.argwhere(np.triu(m >= self.found.threshold, 1))
        return [(self.number[of_position[i]], self.number[of_position[j]]) for i, j in related]

    def _ahead(self, source: int, target: int) -> list[tuple[int, int]]:
        xs, ys = self.found.at[source], self.found.at[target]
        ahead, back = self.found.forward(xs, ys)
        self.unknown.update(xs[i] for i in np.flatnonzero(np.isnan(ahead).any(axis=1)))
        for i in np.flatnonzero(~(ahead >= self.found.threshold).any(axis=1)):
            partly = np.flatnonzero(back[i] >= self.found.threshold)
            if len(partly):
                self.weaker[xs[i]] = ys[int(partly[0])]
        carried = np.argwhere(ahead >= self.found.threshold)
        return [(self.number[xs[i]], self.number[ys[j]]) for i, j in carried]

    def events(self) -> list[Event]:
        """All events, life by life."""
        denials = self._denials()
        told: list[Event] = []
        for life, members in enumerate(self.lives, self.before + 1):
            rows: list[tuple[int, Event]] = []
            holders: set[str] = set()
            for index in members:
                claim = self.found.claims[index]
                if claim.position == self.skip:
                    continue
                name = "kept" if claim.agent in holders else "adopted" if holders else "born"
                holders.add(claim.agent)
                rows.append((claim.position, self._event(life, name, index)))
                if index in self.weaker:
                    other = self.weaker[index]
                    rows.append((self.found.claims[other].position, self._event(life, "weakened", other)))
                rows += [
                    (self.found.claims[other].position, self._event(life, "contradicted", other))
                    for other in denials.get(index, ())
                ]
            rows += self._loss(life, members) if rows else []
            rows.sort(key=lambda row: (row[0], EVENTS.index(row[1].event)))
            told.extend(dict.fromkeys(event for _, event in rows))
        return told

    def _loss(self, life: int, members: list[int]) -> list[tuple[int, Event]]:
        last = max(members, key=lambda index: self.place[self.found.claims[index].position])
        place = self.place[self.found.claims[last].position]
        at_end = [index for index in members if self.place[self.found.claims[index].position] == place]
        if place == len(self.cycle) or self.unknown & set(at_end):
            return []
        position = self.cycle[place]
        if position in self.found.unread:
            return []
        lost = Event(
            trace=self.trace,
            life=life,
            event="lost",
            agent="",
            round=self.found.plan.rounds[position],
            text=self.found.claims[last].text,
            extension=self._extends(last),
        )
        return [(position, lost)]

    def _denials(self) -> dict[int, list[int]]:
        """Claim to the claims of other agents that contradict it, there or at the next position."""
        claims = self.found.claims
        asked: list[tuple[int, int]] = []
        for at, position in enumerate(self.cycle):
            xs = self.found.at[position]
            for ys in (xs, *(self.found.at[later] for later in self.cycle[at + 1 : at + 2])):
                asked += [(x, y) for x, y in self.found.near(xs, ys) if claims[x].agent != claims[y].agent]
        asked = list(dict.fromkeys(asked))
        scores = self.found.ask("contradiction", asked)
        opposed = {pair for pair, score in zip(asked, scores, strict=True) if score >= self.found.threshold}
        stances = self.found.stances
        for life in self.lives:
            for x in life:
                for y in life:
                    near = claims[x].agent != claims[y].agent and (
                        0 <= self.place[claims[y].position] - self.place[claims[x].position] <= 1
                    )
                    if near and abs(stances[x] - stances[y]) >= APART:
                        opposed.add((x, y))
        denials: dict[int, list[int]] = {}
        for x, y in sorted(opposed):
            denials.setdefault(x, []).append(y)
        return denials

    def _extends(self, index: int) -> bool | None:
        value = self.found.extension[index]
        return None if np.isnan(value) else bool(value)

    def _event(self, life: int, name: str, index: int) -> Event:
        claim = self.found.claims[index]
        stance = self.found.stances[index]
        return Event(
            trace=self.trace,
            life=life,
            event=name,
            agent=claim.agent,
            round=self.found.plan.rounds[claim.position],
            text=claim.text,
            step=claim.step,
            start=claim.start,
            end=claim.end,
            stance=None if np.isnan(stance) else float(stance),
            extension=self._extends(index),
        )
