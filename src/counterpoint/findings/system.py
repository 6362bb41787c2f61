"""The runs of one system, and what could be changed in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from counterpoint.findings.observation import Observation
from counterpoint.metrics.costs import Costs
from counterpoint.metrics.counterfactual import (
    amount,
    answer_sides,
    common_unit,
    largest_removable,
    loses_nothing,
    paired_change,
    saving,
    total,
)
from counterpoint.metrics.replay import Recording, Removal
from counterpoint.stats import wilson_interval

__all__ = ["Finding", "System"]

LEAST = 0.02
"""Share of the costs below which a part is not worth a line."""
REPEATED = 0.2
"""Share of an edge's text from which on it is said to be repeated."""
MOST_PARTS = 30
"""So many parts of a system, the costliest, are looked at."""
MOST_ROUNDS = 20
MOST_NAMED = 6
"""Parts of a combination that are named."""
LINKS = 3
"""Steps named with a finding."""


class Finding(Struct, frozen=True):
    """One thing to change."""

    kind: str
    """``agent``, ``edge``, ``rounds``, ``together``, ``unused``, ``loops`` or ``lost``."""
    system: str
    text: str
    share: float
    """What it saves, of all: of the costs; of runs where kind is ``lost``."""
    saved: float
    whole: float
    unit: str
    """``USD``, ``tokens``, ``tokens of text`` or ``runs``."""
    steps: tuple[tuple[str, str], ...]
    """(trace, step) to look at."""

    @property
    def is_estimate(self) -> bool:
        """Whether it says what would be without a part."""
        return self.kind in ("agent", "edge", "rounds", "together")

    def __str__(self) -> str:
        """One line: what, how much, how sure, where."""
        return f"{self.text} ({', '.join(f'{trace}: {step}' for trace, step in self.steps)})"


class System:
    """The runs of one system."""

    def __init__(self, name: str, runs: Sequence[Observation]) -> None:
        self.name = name
        self.runs = runs
        self.unit = common_unit(run.spent for run in runs)
        self.whole = sum(total(run.spent, self.unit) for run in runs)
        self.tested = [run for run in runs if isinstance(run.recording, Recording)]

    def findings(self) -> Iterator[Finding]:
        parts = [finding for finding in (self._part(part) for part in self._parts()) if finding]
        gone = {name for _, part in parts for name in part.agents}
        kept = [
            finding
            for finding, part in parts
            if part.agents or not any(gone & set(edge) for edge in part.edges)
        ]
        yield from kept
        yield from self._rounds()
        yield from self._together([part for _, part in parts], max((one.share for one in kept), default=0))
        yield from self._unused(gone)
        yield from self._loops()
        yield from self._lost()

    def _parts(self) -> list[Removal]:
        """Agents and edges between agents, the costliest first."""
        agents: dict[str, None] = {}
        edges: dict[tuple[str, str], None] = {}
        for run in self.runs:
            spent = run.spent
            speakers = {int(speaker) for speaker in np.unique(spent.speakers) if speaker >= 0}
            agents.update((spent.agents[speaker], None) for speaker in sorted(speakers))
            ends = spent.speakers[spent.pairs]
            for source, reader in np.unique(ends[(ends >= 0).all(axis=1)], axis=0).tolist():
                edges[spent.agents[source], spent.agents[reader]] = None
        parts = [Removal(agents=frozenset([name])) for name in agents] if len(agents) > 1 else []
        parts += [Removal(edges=frozenset([edge])) for edge in edges]
        large = [(self._saved(part), part) for part in parts]
        ranked = sorted(large, key=lambda one: (-one[0], str(one[1])))
        return [part for saved, part in ranked if saved >= LEAST * self.whole > 0][:MOST_PARTS]

    def _saved(self, part: Removal) -> float:
        """What it saves in the runs whose answers can be followed: nothing is claimed about others."""
        return sum(amount(saving(run.spent, part), self.unit) for run in self.tested)

    def _loses_nothing(self, part: Removal) -> bool:
        return (
            bool(self.tested)
            and all(
                loses_nothing(run.recording, part)
                for run in self.tested
                if isinstance(run.recording, Recording)
            )
            and not self._relied_on(part)
        )

    def _relied_on(self, part: Removal) -> bool:
        """Whether in more than half of the runs a turn that stays, and helped, used a text that would go."""
        using = sum(_uses_what_goes(run, part) for run in self.tested)
        return 2 * using > len(self.tested)

    def _having(self, part: Removal) -> list[Observation]:
        """The runs that have any of the part."""
        return [run for run in self.runs if saving(run.spent, part).text > 0]

    def _part(self, part: Removal) -> tuple[Finding, Removal] | None:
        if not self._loses_nothing(part):
            return None
        saved = self._saved(part)
        if part.agents:
            what = f"Without {part}: {self._amount(saved)} less"
            return self._finding("agent", what, part, saved), part
        (edge,) = part.edges
        rows = [(run, _edge_rows(run.spent, edge)) for run in self.tested]
        delivered = sum(float(run.spent.delivered[row].sum()) for run, row in rows)
        again = sum(float((run.spent.delivered * run.repeated)[row].sum()) for run, row in rows)
        transfers = sum(int(row.sum()) for _, row in rows)
        taken = sum(int(run.taken[row].sum()) for run, row in rows)
        carries = f"is taken up in {taken:,} of {transfers:,} transfers"
        if delivered and again / delivered >= REPEATED:
            carries = f"carries {again / delivered:.0%} repeated text"
        what = f"{part} {carries}: {self._amount(saved)}"
        return self._finding("edge", what, part, saved), part

    def _rounds(self) -> Iterator[Finding]:
        """The earliest round after which nothing measured is lost."""
        rounds = sorted(
            {int(turn) for run in self.runs for turn in np.unique(run.spent.rounds[run.spent.speakers >= 0])}
        )
        if not 1 < len(rounds) <= MOST_ROUNDS:
            return
        for place in range(1, len(rounds)):
            part = Removal(rounds=frozenset(rounds[place:]))
            saved = self._saved(part)
            if saved < LEAST * self.whole or not self.whole:
                return
            if self._loses_nothing(part):
                what = f"Without all after round {rounds[place - 1]}: {self._amount(saved)} less"
                yield self._finding("rounds", what, part, saved)
                return

    def _together(self, parts: Sequence[Removal], best: float) -> Iterator[Finding]:
        cases = [(run.recording, run.spent) for run in self.tested]
        removal = largest_removable(cases, parts).removal if len(parts) > 1 else Removal()
        saved = self._saved(removal)
        if self._relied_on(removal):
            return
        if len(removal.agents) + len(removal.edges) < 2 or saved <= 1.1 * best * self.whole:
            return
        what = f"Together, without {_named(removal)}: {self._amount(saved)} less"
        yield self._finding("together", what, removal, saved)

    def _finding(self, kind: str, what: str, part: Removal, saved: float) -> Finding:
        return Finding(
            kind, self.name, f"{what}; {self._sure(part)}", saved / self.whole, saved, self.whole, self.unit,
            self._links(part),
        )  # fmt: skip

    def _sure(self, part: Removal) -> str:
        """How many recorded answers change without the part, and the interval of what that does."""
        having = self._having(part)
        runs = [run for run in having if isinstance(run.recording, Recording)]
        answer = paired_change("answer", _sides(runs, part, "answer"))
        accuracy = paired_change("accuracy", _sides(runs, part, "accuracy"))
        n = len(runs)
        changed = sum(1 for _, side in _sides(runs, part, "answer") if side[1] < 1)
        if changed:
            told = f"dropping this changed {changed:,} of {n:,} recorded answers, none for the worse"
        else:
            told = f"dropping this changed no recorded answer in {n:,} of {n:,} runs"
        if accuracy.ci_low is not None and accuracy.ci_high is not None:
            low, high = (
                f"{100 * bound:+.0f}".replace("-", "−") for bound in (accuracy.ci_low, accuracy.ci_high)
            )
            told += f" (95 % CI of the accuracy change: {low} to {high} points)"
        elif answer.ci_low is not None:
            told += f" (95 % CI of the share that changes: 0 to {-100 * answer.ci_low:.0f} %)"
        if left := len(having) - n:
            told += f"; in {left:,} more no answer can be followed"
        return told

    def _links(self, part: Removal) -> tuple[tuple[str, str], ...]:
        """The steps that cost most of it: of an edge those who read, else those who are gone."""
        links: list[tuple[float, str, str]] = []
        for run in self.tested:
            spent = run.spent
            if part.edges and not part.agents:
                rows = np.flatnonzero(np.any([_edge_rows(spent, edge) for edge in part.edges], axis=0))
                size = spent.delivered[rows] * (1 + run.repeated[rows])
                ends = spent.pairs[rows, 1]
            else:
                gone = [number for number, name in enumerate(spent.agents) if name in part.agents]
                ends = np.flatnonzero(
                    np.isin(spent.speakers, gone) | np.isin(spent.rounds, list(part.rounds))
                )
                size = spent.said[ends]
            for place in np.argsort(-size, kind="stable")[:LINKS].tolist():
                links.append((float(size[place]), run.trace, spent.names[ends[place]]))
        ranked = sorted(links, key=lambda link: (-link[0], link[1], link[2]))
        return tuple(dict.fromkeys((trace, step) for _, trace, step in ranked))[:LINKS]

    def _amount(self, saved: float) -> str:
        """``0.42 of 1.10 USD``."""
        if self.unit == "USD":
            return f"{_money(saved)} of {_money(self.whole)} USD"
        return f"{saved:,.0f} of {self.whole:,.0f} {self.unit}"

    def _unused(self, gone: set[str]) -> Iterator[Finding]:
        """Turns that left no mark on the final answer."""
        turns: dict[str, list[tuple[Observation, int]]] = {}
        for run in self.runs:
            known = len(run.spent.pairs) > 0  # else nobody knows who heard what
            for number, speaker in enumerate(run.spent.speakers.tolist()):
                if known and speaker >= 0 and run.spent.said[number]:
                    turns.setdefault(run.spent.agents[speaker], []).append((run, number))
        for name, listed in turns.items():
            unused = [(run, number) for run, number in listed if not run.useful[number]]
            if name in gone or 2 * len(unused) < len(listed):
                continue
            saved = self._of_steps((run, run.spent.names[number]) for run, number in unused)
            if saved < LEAST * self.whole or not self.whole:
                continue
            text = (
                f"{name}: {len(unused):,} of its {len(listed):,} turns left no mark on the final answer; "
                f"they cost {self._amount(saved)}"
            )
            largest = sorted(unused, key=lambda one: (-one[0].spent.said[one[1]], one[0].trace, one[1]))
            steps = tuple((run.trace, run.spent.names[number]) for run, number in largest[:LINKS])
            yield Finding("unused", self.name, text, saved / self.whole, saved, self.whole, self.unit, steps)

    def _loops(self) -> Iterator[Finding]:
        """Turns after the first time round of a loop."""
        looping = [run for run in self.runs if run.loops]
        if not looping:
            return
        again = [(run, name) for run in looping for _, _, names in run.loops for name in names]
        saved = self._of_steps(again)
        agents, times, _ = max((loop for run in looping for loop in run.loops), key=lambda loop: loop[1])
        text = (
            f"{len(again):,} turns in {len(looping):,} of {len(self.runs):,} runs only go round again "
            f"(longest: {agents}, {times} times): {self._amount(saved)}"
        )
        share = saved / self.whole if self.whole else 0.0
        steps = tuple((run.trace, name) for run, name in again[:LINKS])
        if share >= LEAST:
            yield Finding("loops", self.name, text, share, saved, self.whole, self.unit, steps)

    def _of_steps(self, chosen: Iterable[tuple[Observation, str]]) -> float:
        """What the model calls of steps cost, in the system's unit."""
        by_run: dict[int, tuple[Costs, set[str]]] = {}
        for run, name in chosen:
            by_run.setdefault(id(run), (run.spent, set()))[1].add(name)
        spent = 0.0
        for costs_of, names in by_run.values():
            if self.unit == "tokens of text":
                sizes = dict(zip(costs_of.names, costs_of.said.tolist(), strict=True))
            else:
                amounts = costs_of.calls.usd if self.unit == "USD" else costs_of.calls.tokens
                sizes = dict(zip(costs_of.calls.names, amounts.tolist(), strict=True))
            spent += sum(sizes.get(name, 0.0) for name in names)
        return spent

    def _lost(self) -> Iterator[Finding]:
        """Right answers that a step gave and the run did not."""
        graded = [run for run in self.runs if run.correct is not None]
        lost = [run for run in graded if run.correct is False and run.right]
        if not lost:
            return
        text = f"The right answer was there and was lost in {len(lost):,} of {len(graded):,} runs"
        if len({run.task for run in graded}) == len(graded) > 1:  # else runs are not independent
            low, high = wilson_interval(len(lost), len(graded))
            text += f" (95 % CI {low:.0%} to {high:.0%})"
        share = len(lost) / len(graded)
        steps = tuple((run.trace, run.right[-1]) for run in lost[:LINKS])
        yield Finding("lost", self.name, text, share, len(lost), len(graded), "runs", steps)


Sides = list[tuple[str, tuple[float, float]]]
"""Task, and a measure with and without."""


def _sides(runs: Sequence[Observation], part: Removal, measure: str) -> Sides:
    sides = [(run.task, answer_sides(run.recording, part, measure)) for run in runs]
    return [(task, side) for task, side in sides if not isinstance(side, str)]


def _uses_what_goes(run: Observation, part: Removal) -> bool:
    spent = run.spent
    gone = [number for number, name in enumerate(spent.agents) if name in part.agents]
    goes = np.isin(spent.speakers, gone) | np.isin(spent.rounds, list(part.rounds))
    if not len(spent.pairs):
        return False
    sources, readers = spent.pairs[:, 0], spent.pairs[:, 1]
    cut = goes[sources]
    for edge in part.edges:
        cut = cut | _edge_rows(spent, edge)
    return bool((run.taken & cut & ~goes[readers] & run.useful[readers]).any())


def _named(part: Removal) -> str:
    """What is removed, the first few by name."""
    names = str(part).split(", ")
    return ", ".join(names[:MOST_NAMED]) + (
        f" and {len(names) - MOST_NAMED} more" if names[MOST_NAMED:] else ""
    )


def _edge_rows(spent: Costs, edge: tuple[str, str]) -> NDArray[np.bool_]:
    """(m,) which transfers are of the edge."""
    if not set(edge) <= set(spent.agents):
        return np.zeros(len(spent.pairs), dtype=bool)
    ends = spent.speakers[spent.pairs]
    rows: NDArray[np.bool_] = (ends == [spent.agents.index(name) for name in edge]).all(axis=1)
    return rows


def _money(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.2g}"
