"""The claim metrics of a trace: each pure function of `river` at every position, folded by the case.

Conventions
-----------
A trace is a case: values are means over its positions (transitions, for survival rate) that are defined; part
``at_3`` is the value at the third one. Lineages are pooled over cycles.

What counts
-----------
* At a position: the agents that speak there. One that is silent then is not held against the others.
* A judgment that is missing makes a position undefined only where it could change its value; for clusters,
  always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.contracts import Context, Metric
from counterpoint.errors import ModelError
from counterpoint.metrics.case_means import (
    detail_of,
    folded,
    missing,
    over_positions,
    parts_of,
    settled,
    why_silent,
    why_still,
)
from counterpoint.metrics.clusters import THRESHOLD, cluster_claims, deduplicate_claims, extension_rate
from counterpoint.metrics.discussion import NO_SOURCE, Discussion
from counterpoint.metrics.river import informational_unity, source_retention
from counterpoint.metrics.survival import Fate, fates, length_of, lineages, survival_rate, weakened_rate
from counterpoint.registry import lookup
from counterpoint.score import Score

__all__ = [
    "EXTENSION_RATE",
    "SOURCE_RETENTION",
    "SURVIVAL_LENGTH",
    "SURVIVAL_RATE",
    "UNIQUE_CLAIMS",
    "UNITY",
    "discussion",
]

Floats = NDArray[np.float64]

OPTIONS: Mapping[str, Any] = {
    "judge": "lexical",
    "decomposer": "sentences",
    "model": "",
    "base_url": "",
    "cap": None,
    "max_calls": None,
    "max_usd": None,
    "threshold": THRESHOLD,
    "candidates": 10,
}
"""Parameters that all claim metrics share."""


def discussion(context: Context, options: Mapping[str, Any]) -> Discussion:
    """The trace's claims as judged under ``options``, shared by all metrics that ask for the same."""
    who = {name: options[name] for name in OPTIONS if name not in ("threshold", "candidates")}
    if context.judges is None:
        raise ModelError("no judge was given")
    judges = context.judges

    def make() -> Discussion:
        judge, decomposer = judges(**who)
        return Discussion(
            context,
            judge,
            decomposer,
            threshold=float(options["threshold"]),
            candidates=options["candidates"],
        )

    return context.once(f"discussion {sorted(options.items(), key=str)}", make)


def _unity(context: Context, *, kind: str, **options: Any) -> Score:
    found = discussion(context, options)
    if reason := why_silent(found):
        return Score.undefined(reason)
    stances = found.stances

    def at(position: int) -> Score:
        indices = found.at[position]
        agents = found.speakers[position]
        owners = [found.claims[index].agent for index in indices]
        known = stances[indices]
        if np.isnan(known).any():
            return Score.undefined(f"the stance of a claim is not known: {found.tally.reason}")
        how: dict[str, Any] = {"agents": agents, "kind": kind, "threshold": found.threshold}
        return settled(
            found, found.match(position), lambda match: informational_unity(owners, known, match, **how)
        )

    return over_positions(found, at)


def _unique_claims(context: Context, **options: Any) -> Score:
    return _counted(context, options, lambda counts: Score(counts["source"] + counts["extension"], counts))


def _extension_rate(context: Context, **options: Any) -> Score:
    found = discussion(context, options)
    if not found.source:
        return Score.undefined(NO_SOURCE)

    def rate(counts: dict[str, int | float]) -> Score:
        score = extension_rate(int(counts["source"]), int(counts["extension"]))
        return Score(score.value, counts, score.reason)

    return _counted(context, options, rate)


def _counted(
    context: Context,
    options: Mapping[str, Any],
    measure: Callable[[dict[str, int | float]], Score],
) -> Score:
    found = discussion(context, options)
    if reason := why_silent(found):
        return Score.undefined(reason)
    return over_positions(found, lambda position: _clusters_at(found, position, measure))


def _clusters_at(
    found: Discussion, position: int, measure: Callable[[dict[str, int | float]], Score]
) -> Score:
    indices = found.at[position]
    kinds, match = found.extension[indices], found.match(position, own=True)
    if np.isnan(kinds).any() or np.isnan(match).any():
        return Score.undefined(missing(found))
    owners = [found.plan.agents.index(found.claims[index].agent) for index in indices]
    counts: dict[str, int | float] = {}
    distinct = 0
    for name, kind in (("source", 0), ("extension", 1)):
        of_kind = np.flatnonzero(kinds == kind)
        m, own = match[np.ix_(of_kind, of_kind)], [owners[index] for index in of_kind]
        counts[name] = len(cluster_claims(own, m, threshold=found.threshold))
        kept = deduplicate_claims(own, m, threshold=found.threshold)
        distinct += len(
            cluster_claims([own[i] for i in kept], m[np.ix_(kept, kept)], threshold=found.threshold)
        )
    counts["dedup"] = distinct
    if len(indices):
        counts["raw_extension_rate"] = float(kinds.mean())
    return measure(counts)


def _source_retention(context: Context, **options: Any) -> Score:
    found = discussion(context, options)
    if reason := why_silent(found):
        return Score.undefined(reason)
    facts, reason = found.facts
    if not facts:
        return Score.undefined(reason or "the source states no fact", parts={"facts": 0})

    def at(position: int) -> Score:
        owners = [found.claims[index].agent for index in found.at[position]]
        return settled(
            found,
            found.retained(position),
            lambda table: source_retention(
                owners, table, found.speakers[position], threshold=found.threshold
            ),
        )

    return over_positions(found, at)


def _survival_rate(context: Context, **options: Any) -> Score:
    found = discussion(context, options)
    if reason := why_silent(found) or why_still(found):
        return Score.undefined(reason)
    ends: list[Fate] = []
    scores = []
    for source, target in found.plan.transitions:
        score, fate = _transition(found, source, target)
        scores.append(score)
        ends.extend(fate)
    weakened = weakened_rate(ends)
    extra = {} if weakened.value is None else {"weakened_rate": weakened.value}
    return folded(found, scores, extra)


def _transition(found: Discussion, source: int, target: int) -> tuple[Score, list[Fate]]:
    """Survival rate from one position to the next, and what became of each extension."""
    for position in (source, target):
        if position in found.unread:
            return Score.undefined(found.unread[position]), []
    groups: list[list[bool]] = []
    ends: list[Fate] = []
    for agent in found.speakers[source]:
        heir = found.plan.successor(agent, source, target)
        if heir is None:
            continue
        own = found.of(source, agent)
        if np.isnan(found.extension[own]).any():
            return Score.undefined(missing(found)), []
        xs = [x for x in own if found.extension[x] == 1]
        ahead, back = found.forward(xs, found.of(target, heir))
        low, high = (_kept(found, ahead, fill) for fill in (0.0, 1.0))
        if low != high:
            return Score.undefined(missing(found)), []
        groups.append(low)
        ends.extend(fates(np.nan_to_num(ahead), np.nan_to_num(back), threshold=found.threshold))
    return survival_rate(groups), ends


def _kept(found: Discussion, ahead: Floats, fill: float) -> list[bool]:
    """Which extensions a claim of the successor carries, taking what is not known to be ``fill``."""
    return [bool((np.nan_to_num(row, nan=fill) >= found.threshold).any()) for row in ahead]


def _survival_length(context: Context, *, method: str, **options: Any) -> Score:
    found = discussion(context, options)
    if reason := why_silent(found) or why_still(found):
        return Score.undefined(reason)
    if found.unread:
        return Score.undefined(next(iter(found.unread.values())), parts=parts_of(found))
    depth = max(len(cycle) for cycle in found.plan.cycles)
    chosen: list[list[int]] = []
    merged: list[list[int]] = []
    for cycle in found.plan.cycles:
        instances, links, scores, reason = _links(found, cycle)
        if reason:
            return Score.undefined(reason, parts=parts_of(found))
        for way, into in ((method, chosen), ("greedy", merged)):
            lines = lineages([place for place, _ in instances], links, depth, method=way, scores=scores)
            into.extend([[instances[index][0] for index in line] for line in lines])
    score = length_of(chosen, depth)
    if score.value is None:
        return Score.undefined(score.reason, parts=parts_of(found))
    greedy = length_of(merged, depth)
    parts = {**score.parts, "positions": depth, "greedy_mean": greedy.parts["mean"], **parts_of(found)}
    return Score(score.value, parts, detail=detail_of(found))


def _links(
    found: Discussion, cycle: Sequence[int]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[float], str]:
    """Extensions of a cycle as (place in it from 1, claim), their links, and the links' scores."""
    instances = [
        (place, index)
        for place, position in enumerate(cycle, 1)
        for index in found.at[position]
        if found.extension[index] != 0
    ]
    number = {index: at for at, (_, index) in enumerate(instances)}
    links: list[tuple[int, int]] = []
    scores: list[float] = []
    if any(np.isnan(found.extension[index]) for _, index in instances):
        return instances, links, scores, missing(found)
    for position in cycle:
        of_position, m = found.at[position], found.match(position)
        kept = [n for n, index in enumerate(of_position) if index in number]
        if np.isnan(m[np.ix_(kept, kept)]).any():
            return instances, links, scores, missing(found)
        for n, i in enumerate(kept):
            for j in kept[n + 1 :]:
                if m[i, j] >= found.threshold:
                    links.append((number[of_position[i]], number[of_position[j]]))
                    scores.append(float(m[i, j]))
    for source, target in pairwise(cycle):
        for agent in found.speakers[source]:
            heir = found.plan.successor(agent, source, target)
            xs = [x for x in found.of(source, agent) if x in number]
            ys = [y for y in found.of(target, heir) if y in number] if heir is not None else []
            ahead, _ = found.forward(xs, ys)
            if np.isnan(ahead).any():
                return instances, links, scores, missing(found)
            for i, j in np.argwhere(ahead >= found.threshold):
                links.append((number[xs[i]], number[ys[j]]))
                scores.append(float(ahead[i, j]))
    return instances, links, scores, ""


def _identity(*, judge: Any, decomposer: Any, **_: Any) -> dict[str, str]:
    """Versions of who judges and who decomposes, for the signature; a heuristic says that it is one."""
    named = {"judge": judge, "decomposer": decomposer}
    found = {kind: lookup(kind, who) if isinstance(who, str) else who for kind, who in named.items()}
    return {
        f"{kind}_version": str(getattr(who, "VERSION", None) or getattr(who, "id", named[kind]))
        for kind, who in found.items()
    }


def _metric(name: str, summary: str, compute: Callable[..., Score], source: str, **how: Any) -> Metric:
    own = how.pop("own", {})
    settings: dict[str, Any] = {"range": (0, 1), "better": "", "unit": ""}
    return Metric(
        name=name,
        version=2,
        summary=summary,
        compute=compute,
        source=source,
        needs=("texts", "embedder", "judge"),
        parameters={**own, **OPTIONS},
        resources=_identity,
        **{**settings, **how},
    )


UNITY = _metric(
    "unity",
    "Informational unity: how far agents make the same claims and take the same stance.",
    _unity,
    "RIVER, informational unity U",
    own={"kind": "hard"},
)
UNIQUE_CLAIMS = _metric(
    "unique_claims",
    "Claim count: different claims at a position, as clusters of corresponding ones.",
    _unique_claims,
    "RIVER, claim count CC, appendix B.2",
    range=(0, None),
    unit="claims",
)
EXTENSION_RATE = _metric(
    "extension_rate",
    "Extension rate: the share of different claims that go beyond the source.",
    _extension_rate,
    "RIVER, extension rate ER",
)
SOURCE_RETENTION = _metric(
    "source_retention",
    "Source retention: the share of source facts that an agent's claims still carry.",
    _source_retention,
    "RIVER, source retention OR",
    better="higher",
)
SURVIVAL_RATE = _metric(
    "survival_rate",
    "Survival rate: the share of extensions that the next position still carries.",
    _survival_rate,
    "RIVER, survival rate SR",
    better="higher",
)
SURVIVAL_LENGTH = _metric(
    "survival_length",
    "Survival length: the share of positions that a lineage of extensions covers.",
    _survival_length,
    "RIVER, survival length SL, normalized by the positions (ours)",
    better="higher",
    own={"method": "components"},
)
