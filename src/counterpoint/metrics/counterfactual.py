"""Counterfactuals: a recorded team without an agent, an edge or a round; always an estimate.

Conventions
-----------
* Both sides are the same traces, so every difference is paired: without minus with. Traces of one task are
  averaged first.
* Undefined on either side leaves the trace out of that measure, and is counted.

What counts
-----------
* ``answer``: share of runs whose answer stays; ``vote``: share whose vote does; ``accuracy``: share of right
  runs, graded as the metric ``accuracy`` does where the answer stays. All by `replay` and its assumption.
* ``ids``, ``upr``: the metrics, on the trace without what is removed and with replayed answers.
* ``tokens``, ``cost_usd``: less what removed steps used, and what they or removed edges put into the prompts
  of others (`costs`). What else remaining agents would have said is not known, and taken to stay as it was.

Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace as modified

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from counterpoint.contracts import Context, Metric
from counterpoint.errors import UsageError
from counterpoint.graph import CollaborationGraph
from counterpoint.metrics.costs import Costs, Indices, costs
from counterpoint.metrics.gemmas import IDS, UPR
from counterpoint.metrics.replay import ASSUMPTION, Recording, Removal, recording, without
from counterpoint.registry import suggest
from counterpoint.stats import Interval, difference_interval, interval, paired_proportion_interval
from counterpoint.trace import task_id

__all__ = [
    "MEASURES",
    "Change",
    "Counterfactual",
    "Removable",
    "Saving",
    "amount",
    "answer_sides",
    "common_unit",
    "counterfactual",
    "largest_removable",
    "loses_nothing",
    "paired_change",
    "reduced",
    "removals",
    "saving",
    "total",
]

MEASURES = ("answer", "vote", "accuracy", "ids", "upr", "tokens", "cost_usd")


class Change(Struct, frozen=True):
    """One measure with and without what is removed."""

    measure: str
    before: float | None
    after: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    """Tasks behind it."""
    undefined: int
    """Traces without a value on either side."""
    reason: str = ""
    """Why there is no value, or no interval."""

    def __str__(self) -> str:
        """``accuracy 0.92 -> 0.92 (+0, 95 % interval -0.09 to +0.09, n=40)``."""
        if self.before is None or self.after is None or self.difference is None:
            return f"{self.measure}: undefined: {self.reason}"
        bounds = f", no interval: {self.reason}"
        if self.ci_low is not None:
            bounds = f", 95 % interval {self.ci_low:+.3g} to {self.ci_high:+.3g}"
        left = f", {self.undefined} undefined" if self.undefined else ""
        change = f"{self.before:.4g} -> {self.after:.4g} ({self.difference:+.3g}{bounds}, n={self.n}{left})"
        return f"{self.measure}: {change}"


class Counterfactual(Struct, frozen=True):
    """What a set of traces would be without a part of the team; an estimate."""

    removal: Removal
    changes: tuple[Change, ...]
    assumption: str = ASSUMPTION

    def __getitem__(self, measure: str) -> Change:
        return next(change for change in self.changes if change.measure == measure)

    def __str__(self) -> str:
        """A line a measure, below what is removed and the assumption."""
        return "\n".join([f"without {self.removal} ({self.assumption})", *map(str, self.changes)])


class Saving(Struct, frozen=True):
    """What a removal saves in one trace."""

    tokens: float
    """Of removed steps, as recorded, and of deliveries, as estimated."""
    usd: float | None
    """None where they are not known."""
    text: float
    """Tokens of the texts alone, said and delivered: known without usage."""


def saving(spent: Costs, removal: Removal) -> Saving:
    """What a removal saves of the costs of a trace: removed steps, and deliveries that no longer happen."""
    number = {name: index for index, name in enumerate(spent.agents)}
    gone = [number[name] for name in removal.agents if name in number]
    removed = np.isin(spent.speakers, gone) | _of_rounds(spent.rounds, spent.speakers, removal)
    source, reader = spent.pairs[:, 0], spent.pairs[:, 1]
    cut = [
        number[one] * len(number) + number[other]
        for one, other in removal.edges
        if one in number and other in number
    ]
    ends = spent.speakers[source] * len(number) + spent.speakers[reader]
    dropped = (removed[source] | (np.isin(ends, cut) & (spent.speakers[reader] >= 0))) & ~removed[reader]
    calls = spent.calls
    own = np.isin(calls.speakers, gone) | _of_rounds(calls.rounds, calls.speakers, removal)
    delivered = float(spent.delivered[dropped].sum())
    usd = float(calls.usd[own].sum() + spent.delivered_usd[dropped].sum())
    return Saving(
        float(calls.tokens[own].sum()) + delivered,
        None if spent.usd is None or math.isnan(usd) else usd,
        float(spent.said[removed].sum()) + delivered,
    )


def _of_rounds(rounds: Indices, speakers: Indices, removal: Removal) -> NDArray[np.bool_]:
    of_rounds: NDArray[np.bool_] = np.isin(rounds, list(removal.rounds)) & (speakers >= 0)
    return of_rounds


def removals(contexts: Iterable[Context]) -> list[Removal]:
    """Every single agent, edge between agents, and round that could be taken out, in this order."""
    agents: dict[str, None] = {}
    edges: dict[tuple[str, str], None] = {}
    rounds: set[int] = set()
    for context in contexts:
        agents.update(dict.fromkeys(context.graph.agent_names))
        view = context.graph.agents("union")
        edges.update(dict.fromkeys((view.names[i], view.names[j]) for i, j in view.edges))
        rounds.update(step.round or 0 for step in context.graph.steps)
    found = [Removal(agents=frozenset([name])) for name in agents] if len(agents) > 1 else []
    found += [Removal(edges=frozenset([edge])) for edge in edges]
    return found + [Removal(rounds=frozenset([turn])) for turn in sorted(rounds) if len(rounds) > 1]


def counterfactual(
    contexts: Sequence[Context], removal: Removal, measures: Sequence[str] = MEASURES
) -> Counterfactual:
    """Each measure with and without what is removed, with paired 95 % intervals over tasks; an estimate.

    Parameters
    ----------
    contexts: the traces, one context each.
    removal: agents, edges or rounds; a trace that has none of them stays as it is.
    measures: of `MEASURES`.

    Raises
    ------
    UsageError: another measure, or a removal of what no trace has.
    """
    for name in measures:
        if name not in MEASURES:
            raise UsageError(f"measure {name!r}{suggest(name, MEASURES)} is none of {', '.join(MEASURES)}")
    _refuse_unknown(contexts, removal)
    changes = []
    for name in measures:
        sides = [(task_id(context.trace), _sides(context, removal, name)) for context in contexts]
        changes.append(paired_change(name, sides))
    return Counterfactual(removal, tuple(changes))


def _refuse_unknown(contexts: Sequence[Context], removal: Removal) -> None:
    known = Removal()
    for single in removals(contexts):
        known |= single
    agents = {name for context in contexts for name in context.graph.agent_names}
    for name in sorted(removal.agents - agents):
        raise UsageError(f"no agent {name!r}{suggest(name, agents)} in these traces")
    for source, reader in sorted(removal.edges - known.edges):
        raise UsageError(f"no transfer from {source!r} to {reader!r} in these traces")
    for turn in sorted(removal.rounds - known.rounds):
        raise UsageError(f"no round {turn} beside others in these traces")


Sides = tuple[float, float] | str
"""A measure with and without, or why it is undefined."""


def _sides(context: Context, removal: Removal, measure: str) -> Sides:
    if measure in ("ids", "upr"):
        return _metric_sides(context, removal, IDS if measure == "ids" else UPR)
    if measure in ("tokens", "cost_usd"):
        return _cost_sides(context, removal, measure)
    return answer_sides(recording(context), removal, measure)


def answer_sides(found: Recording | str, removal: Removal, measure: str) -> Sides:
    """``answer``, ``vote`` or ``accuracy`` of a recording, with and without."""
    if not isinstance(found, Recording):
        return found
    outcome = found.outcome(removal)
    if measure == "accuracy":
        if found.correct is None or outcome.right is None:
            return "no gold answer: record one with the trace, or give --gold FILE"
        return float(found.correct), outcome.right
    stays = outcome.stays if measure == "answer" else outcome.vote.top == found.last.top
    return 1.0, float(stays)


def _metric_sides(context: Context, removal: Removal, metric: Metric) -> Sides:
    parameters = metric.values(context.profile)
    before = context.once(f"score {metric.name}", lambda: metric.compute(context, **parameters))
    if before.value is None:
        return before.reason
    after = metric.compute(reduced(context, removal), **parameters)
    return after.reason if after.value is None else (before.value, after.value)


def reduced(context: Context, removal: Removal) -> Context:
    """The context of the trace without what is removed, its answers replayed."""
    graph = CollaborationGraph(without(context, removal), evidence=context.graph.evidence)
    return modified(context, trace=graph.trace, graph=graph, memo={})


def _cost_sides(context: Context, removal: Removal, measure: str) -> Sides:
    spent = costs(context)
    saved = saving(spent, removal)
    if measure == "tokens":
        if spent.tokens is None:
            return "no token counts in the trace: have the framework record `usage` with each call"
        return float(spent.tokens), max(0.0, spent.tokens - saved.tokens)
    if spent.usd is None or saved.usd is None:
        return "some steps have no known price: record `cost_usd` and `model` with each step"
    return spent.usd, max(0.0, spent.usd - saved.usd)


def paired_change(name: str, sides: Iterable[tuple[str, Sides]]) -> Change:
    """A measure with and without over tasks, from (task, sides) of each trace."""
    tasks: dict[str, list[tuple[float, float]]] = {}
    reasons = []
    for task, side in sides:
        if isinstance(side, str):
            reasons.append(side)
        else:
            tasks.setdefault(task, []).append(side)
    if not tasks:
        reason = reasons[0] if reasons else "there is no trace"
        return Change(name, None, None, None, None, None, 0, len(reasons), reason)
    before, after = np.array([np.mean(pairs, axis=0) for pairs in tasks.values()]).T
    bounds = _bounds(name, before, after)
    first, second = float(before.mean()), float(after.mean())
    return Change(
        name, first, second, second - first, bounds.low, bounds.high, len(tasks), len(reasons), bounds.reason
    )


def _bounds(name: str, before: np.ndarray, after: np.ndarray) -> Interval:
    n, moved = len(after), after - before
    if name in ("answer", "vote"):
        share = interval(after, proportion=True)
        low, high = (None if bound is None else bound - 1.0 for bound in (share.low, share.high))
        return replace(share, low=low, high=high)
    if name == "accuracy" and np.isin(before, (0, 1)).all() and np.isin(moved, (-1, 0, 1)).all():
        gained, lost = int((moved > 0).sum()), int((moved < 0).sum())
        return Interval(*paired_proportion_interval(gained, lost, n), "score", n)
    return difference_interval(after, before)


# --- the largest part that can go -------------------------------------------------------------------


class Removable(Struct, frozen=True):
    """The largest part found that can go without a measured loss; an estimate."""

    removal: Removal
    share: float
    """What it saves, of all: dollars where they are known throughout, else tokens, else tokens of texts."""
    unit: str
    """``USD``, ``tokens``, or ``tokens of text``."""
    tested: int
    """Runs whose answers could be replayed."""
    assumption: str = ASSUMPTION


def largest_removable(
    cases: Sequence[tuple[Recording | str, Costs]], candidates: Iterable[Removal]
) -> Removable:
    """Greedy search for the largest part of a team whose removal loses nothing that was measured.

    Candidates are tried once each, the largest saving first, and kept if with all kept before them no graded
    run is worth less than recorded, and every other run's answer stays.

    Parameters
    ----------
    cases: recording and costs of each trace.
    candidates: single removals; see `removals`.

    Returns
    -------
    Removable; its removal is empty where nothing can go, or no answer is known.
    """
    unit = common_unit([spent for _, spent in cases])
    tested = [found for found, _ in cases if isinstance(found, Recording)]
    sizes = {one: sum(amount(saving(spent, one), unit) for _, spent in cases) for one in candidates}
    kept = Removal()
    for one in sorted((one for one in sizes if sizes[one] > 0), key=lambda one: (-sizes[one], str(one))):
        if any(kept.agents & set(edge) for edge in one.edges):
            continue  # gone with its agent
        together = kept | one
        if tested and all(loses_nothing(found, together) for found in tested):
            kept = together
    saved = sum(amount(saving(spent, kept), unit) for _, spent in cases)
    whole = sum(total(spent, unit) for _, spent in cases)
    return Removable(kept, saved / whole if whole else 0.0, unit, len(tested))


def loses_nothing(found: Recording, removal: Removal) -> bool:
    """Whether a run is worth as much without the removed part.

    A right run stays right; one that is wrong, or not graded, keeps its answer or becomes right: a wrong
    answer that is gone is no proof that the part was not needed.
    """
    outcome = found.outcome(removal)
    if found.correct is None or outcome.right is None:
        return outcome.stays
    return outcome.right >= 1 or (not found.correct and outcome.stays)


def common_unit(spent: Iterable[Costs]) -> str:
    """The best unit that is known of every trace: ``USD``, ``tokens``, ``tokens of text``."""
    every = list(spent)
    if every and all(one.usd is not None for one in every):
        return "USD"
    return "tokens" if every and all(one.tokens is not None for one in every) else "tokens of text"


def amount(saved: Saving, unit: str) -> float:
    """A saving in one of the units; 0 where it is not known."""
    return (saved.usd or 0.0) if unit == "USD" else saved.tokens if unit == "tokens" else saved.text


def total(spent: Costs, unit: str) -> float:
    """All of a trace's costs in one of the units; 0 where they are not known."""
    return (
        (spent.usd or 0.0) if unit == "USD" else float(spent.tokens or 0) if unit == "tokens" else spent.text
    )
