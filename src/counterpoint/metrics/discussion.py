"""A trace as claims and the judged relations between them: what the claim metrics are computed on.

Conventions
-----------
* Claims are those of steps of kind ``agent``; their order is that of the trace. Relations are looked up by
  claim index; NaN is "not known": the judge gave no usable answer, or the budget was spent.
* The source is ``labels["source_text"]``, else the task. Without one every claim counts as an extension.

What counts
-----------
Each claim is compared with its nearest others only (by embedding, ``candidates`` of them at each place), so
that the number of judgments grows with the number of claims and not with its square. Pairs left out count as
unrelated. What that costs is measured: at each place some pairs that were left out are judged after all, and
``filter_recall`` is the estimated share of related pairs that were among the candidates.

A position of more than 2,000 claims, as one message of a megabyte makes, is not compared at all, and neither
is a source of more than 100,000 characters: what needs them is undefined, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from counterpoint.contracts import Context, Decomposer, Judge, Question, Verdict
from counterpoint.metrics.positions import Plan, read_plan
from counterpoint.trace import Step

__all__ = ["Claim", "Discussion"]

AUDITED = 8
"""Pairs that the filter left out and that are judged after all, at each place."""

MOST_CLAIMS = 2_000
"""Claims of one position that are compared: their table of relations has the square of that many entries."""

LONGEST_SOURCE = 100_000
"""Characters of a source that claims are held against, sentence by sentence."""

Floats = NDArray[np.float64]
Pair = tuple[int, int]


class Claim(Struct, frozen=True):
    """One unit of information that an agent puts forward."""

    text: str
    step: str
    agent: str
    position: int
    """From 0; see `positions`."""
    start: int
    end: int
    """Where it stands in the step's text; ``start == end`` where that is not known."""
    stance: float | None = None
    """0 rejects, .5 neutral or uncertain, 1 supports; None: not judged, or not known."""


@dataclass
class Tally:
    """What judging took and how well the filter did."""

    judgments: int = 0
    ambiguous: int = 0
    undefined: int = 0
    excluded: int = 0
    """Pairs that the filter left out."""
    related: int = 0
    """Related pairs among the candidates."""
    missed: float = 0.0
    """Related pairs among those left out, estimated."""
    reason: str = ""
    """Why the first undefined judgment was."""

    @property
    def recall(self) -> float | None:
        """Share of related pairs that the filter let through; None where there is no related pair."""
        total = self.related + self.missed
        return self.related / total if total else None


class Discussion:
    """The claims of one trace, and lazily what a judge says about them."""

    def __init__(
        self,
        context: Context,
        judge: Judge,
        decomposer: Decomposer,
        *,
        threshold: float,
        candidates: int | None,
    ) -> None:
        self.context, self.judge, self.decomposer = context, judge, decomposer
        self.threshold, self.candidates = threshold, candidates
        self.tally = Tally()
        self.plan: Plan
        self.plan, self.problem = read_plan(context)
        self._p: dict[Pair, float] = {}
        self._audited: set[tuple[str, int, int]] = set()
        self._find_claims()

    def _find_claims(self) -> None:
        place = {number: position for position, number in enumerate(self.plan.rounds)}
        steps: Sequence[Step] = self.context.graph.steps
        found = self.decomposer([step.text for step in steps])
        self.claims: list[Claim] = []
        self.capped = 0
        self.unread: dict[int, str] = {}
        """Positions with a text that could not be decomposed, or too many claims; and why."""
        self.speakers: list[list[str]] = [[] for _ in self.plan.rounds]
        for step, decomposed in zip(steps, found, strict=True):
            position = place[step.round or 0]
            if step.agent not in self.speakers[position]:
                self.speakers[position].append(step.agent)
            self.capped += decomposed.capped
            if decomposed.reason:
                self.unread.setdefault(position, decomposed.reason)
            for one in decomposed.statements:
                self.claims.append(Claim(one.text, step.id, step.agent, position, one.start, one.end))
        self._text = {step.id: step.text for step in steps}
        for position, count in Counter(claim.position for claim in self.claims).items():
            if count > MOST_CLAIMS:
                self.unread[position] = (
                    f"position {position + 1} has {count:,} claims, and {MOST_CLAIMS:,} can be compared: "
                    "set cap=N, the claims to keep of each message"
                )
        self.claims = [claim for claim in self.claims if claim.position not in self.unread]

    # --- places ----------------------------------------------------------------------------------

    @cached_property
    def at(self) -> list[list[int]]:
        """Claim indices of each position."""
        places: list[list[int]] = [[] for _ in self.plan.rounds]
        for index, claim in enumerate(self.claims):
            places[claim.position].append(index)
        return places

    def of(self, position: int, agent: str) -> list[int]:
        """Claim indices of one agent at one position."""
        return [index for index in self.at[position] if self.claims[index].agent == agent]

    # --- the source ------------------------------------------------------------------------------

    @cached_property
    def source(self) -> str:
        """The text that the discussion starts from; empty where there is none."""
        given = self.context.trace.labels.get("source_text")
        return given if isinstance(given, str) and given.strip() else self.context.trace.task.strip()

    @cached_property
    def facts(self) -> tuple[list[str], str]:
        """The source's own claims; and why there are none."""
        if not self.source:
            return [], NO_SOURCE
        if len(self.source) > LONGEST_SOURCE:
            return [], TOO_LONG
        (found,) = self.decomposer([self.source])
        return [one.text for one in found.statements], found.reason

    @cached_property
    def extension(self) -> Floats:
        """Of each claim: 1 if it goes beyond the source, 0 if the source supports it, NaN if not known."""
        if not self.source:
            return np.ones(len(self.claims))
        if len(self.source) > LONGEST_SOURCE:
            self.tally.reason = self.tally.reason or TOO_LONG
            return np.full(len(self.claims), np.nan)
        scores = self._ask("support", [(self.source, claim.text) for claim in self.claims])
        return np.where(np.isnan(scores), np.nan, (scores < self.threshold).astype(np.float64))

    def retained(self, position: int) -> Floats:
        """p(g -> x) of every fact and claim at a position, (facts, claims)."""
        facts, _ = self.facts
        indices = self.at[position]
        table = np.zeros((len(facts), len(indices)))
        if not facts or not indices:
            return table
        texts = [self.claims[index].text for index in indices]
        pairs, audited = self._near(self._rows(facts), self._rows(texts), f"facts {position}")
        scores = self._ask("preservation", [(texts[j], facts[i]) for i, j in pairs])
        self._count(scores, audited)
        for (i, j), score in zip(pairs, scores, strict=True):
            table[i, j] = score
        return table

    # --- relations between claims ------------------------------------------------------------------

    @cached_property
    def stances(self) -> Floats:
        """The stance of each claim; NaN where it is not known."""
        pairs = [(self.passage(claim), claim.text) for claim in self.claims]
        return self._ask("stance", pairs)

    def passage(self, claim: Claim) -> str:
        """The text that a claim stands in: its own passage, or all of its step where that is not known."""
        text = self._text[claim.step]
        return text[claim.start : claim.end] if claim.end > claim.start else text

    def preservation(self, pairs: Iterable[Pair]) -> Floats:
        """p(x -> y) of pairs of claim indices: does y still carry what x says?"""
        wanted = list(pairs)
        new = list(dict.fromkeys(pair for pair in wanted if pair not in self._p))
        texts = [(self.claims[y].text, self.claims[x].text) for x, y in new]
        self._p.update(zip(new, self._ask("preservation", texts).tolist(), strict=True))
        return np.array([self._p[pair] for pair in wanted], dtype=np.float64)

    def match(self, position: int, *, own: bool = False) -> Floats:
        """m of the claims at a position, (n, n); with ``own`` between claims of one agent too."""
        indices = self.at[position]
        m = np.zeros((len(indices), len(indices)))
        np.fill_diagonal(m, 1.0)
        owners = [self.claims[index].agent for index in indices]
        allowed = np.array([[own or a != b for b in owners] for a in owners], dtype=bool).reshape(m.shape)
        np.fill_diagonal(allowed, False)
        rows = self._rows([self.claims[index].text for index in indices])
        near, audited = self._near(rows, rows, f"position {position} {own}", allowed)
        pairs = sorted({(min(i, j), max(i, j)) for i, j in near})
        forward = self.preservation((indices[i], indices[j]) for i, j in pairs)
        self._count(forward, audited)
        # Where one direction fails so does the minimum: the other one need not be asked.
        open_ = [n for n in range(len(pairs)) if not forward[n] < self.threshold]
        backward = self.preservation((indices[pairs[n][1]], indices[pairs[n][0]]) for n in open_)
        lower = forward.copy()
        # A direction that fails settles the minimum, whether the other one is known or not.
        lower[open_] = np.where(backward < self.threshold, backward, np.minimum(forward[open_], backward))
        for (i, j), score in zip(pairs, lower, strict=True):
            m[i, j] = m[j, i] = score
        return m

    def forward(self, xs: Sequence[int], ys: Sequence[int]) -> tuple[Floats, Floats]:
        """p(x -> y) and p(y -> x) of claims and a successor's; the latter only where the first fails."""
        ahead, back = np.zeros((len(xs), len(ys))), np.zeros((len(xs), len(ys)))
        if not xs or not ys:
            return ahead, back
        rows = self._rows([self.claims[x].text for x in xs])
        columns = self._rows([self.claims[y].text for y in ys])
        near, audited = self._near(rows, columns, f"{xs[0]} to {ys[0]}")
        scores = self.preservation((xs[i], ys[j]) for i, j in near)
        self._count(scores, audited)
        for (i, j), score in zip(near, scores, strict=True):
            ahead[i, j] = score
        gone = [(i, j) for i, j in near if not (ahead[i] >= self.threshold).any()]
        reverse = self.preservation((ys[j], xs[i]) for i, j in gone)
        for (i, j), score in zip(gone, reverse, strict=True):
            back[i, j] = score
        return ahead, back

    # --- judging and filtering -----------------------------------------------------------------------

    def _ask(self, question: Question, pairs: Sequence[tuple[str, str]]) -> Floats:
        verdicts: list[Verdict] = self.judge(question, pairs) if pairs else []
        self.tally.judgments += len(verdicts)
        for verdict in verdicts:
            self.tally.ambiguous += verdict.ambiguous
            if verdict.score is None:
                self.tally.undefined += 1
                self.tally.reason = self.tally.reason or verdict.reason
        return np.array([np.nan if one.score is None else one.score for one in verdicts], dtype=np.float64)

    def ask(self, question: Question, pairs: Sequence[Pair]) -> Floats:
        """A question about pairs (x, y) of claims: the text is y's, the claim x's."""
        return self._ask(question, [(self.claims[y].text, self.claims[x].text) for x, y in pairs])

    def near(self, xs: Sequence[int], ys: Sequence[int]) -> list[Pair]:
        """Pairs (x, y) of claims that are worth a question: the nearest ones."""
        if not xs or not ys:
            return []
        rows = self._rows([self.claims[x].text for x in xs])
        columns = self._rows([self.claims[y].text for y in ys])
        pairs, _ = self._near(rows, columns, "", audit=False)
        return [(xs[i], ys[j]) for i, j in pairs]

    def _rows(self, texts: list[str]) -> tuple[list[str], Floats | None]:
        if self.candidates is None or self.context.embed is None or not texts:
            return texts, None
        return texts, np.asarray(self.context.embed(texts), dtype=np.float64)

    def _near(
        self,
        rows: tuple[list[str], Floats | None],
        columns: tuple[list[str], Floats | None],
        place: str,
        allowed: NDArray[np.bool_] | None = None,
        *,
        audit: bool = True,
    ) -> tuple[list[Pair], bool]:
        """Pairs (row, column) to judge, each row's and column's nearest; and whether they are audited."""
        shape = (len(rows[0]), len(columns[0]))
        open_ = np.ones(shape, dtype=bool) if allowed is None else allowed
        k = self.candidates
        if k is None or rows[1] is None or columns[1] is None or max(shape) <= k:
            return [(int(i), int(j)) for i, j in np.argwhere(open_)], False
        cosines = np.where(open_, np.round(rows[1] @ columns[1].T, 6), -2.0)
        chosen = np.zeros(shape, dtype=bool)
        for axis in (0, 1):
            ranked = np.argsort(-cosines, axis=axis, kind="stable")
            np.put_along_axis(chosen, np.take(ranked, range(min(k, shape[axis])), axis=axis), True, axis=axis)
        chosen &= open_
        left = open_ & ~chosen
        if allowed is not None:  # a pair of one position counts once
            left = np.triu(left)
        audited = audit and self._audit(rows[0], columns[0], left, place)
        return [(int(i), int(j)) for i, j in np.argwhere(chosen)], audited

    def _audit(
        self,
        rows: list[str],
        columns: list[str],
        left: NDArray[np.bool_],
        place: str,
    ) -> bool:
        """Judge some of the pairs that are left out, once, to estimate what the filter misses there."""
        key = (place, *left.shape)
        out = np.argwhere(left)
        if key in self._audited or not len(out):
            return False
        self._audited.add(key)
        rng = np.random.default_rng(0)
        sample = out[rng.choice(len(out), min(AUDITED, len(out)), replace=False)]
        found = self._ask("preservation", [(columns[j], rows[i]) for i, j in sample])
        self.tally.excluded += len(out)
        self.tally.missed += float((found >= self.threshold).mean()) * len(out)
        return True

    def _count(self, scores: Floats, audited: bool) -> None:
        """Related pairs among the candidates, where those left out are counted too."""
        if audited:
            self.tally.related += int((scores >= self.threshold).sum())


NO_SOURCE = "the trace has no task text, nor labels.source_text: nothing to tell source from extension"
TOO_LONG = (
    f"the source has more than {LONGEST_SOURCE:,} characters: "
    "give labels.source_text what of it the agents were to discuss"
)
