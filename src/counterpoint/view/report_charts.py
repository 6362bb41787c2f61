"""The charts of a report, each with what it shows: diversity over the weight of words, claims over positions,
cost, differences between systems, damage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from counterpoint.compare import compare
from counterpoint.contracts import Context
from counterpoint.errors import CounterpointError
from counterpoint.graph import CollaborationGraph
from counterpoint.metrics.costs import Costs
from counterpoint.metrics.damage import Curve
from counterpoint.metrics.damage_report import damage_report
from counterpoint.score import Row, Score
from counterpoint.scores import Scores
from counterpoint.trace import Trace
from counterpoint.view.markup import inline, picture
from counterpoint.view.pictures import claims_svg, comparison_svg, cost_svg, damage_svg, ids_svg
from counterpoint.view.report_claims import HEURISTIC
from counterpoint.view.report_trace import Seen

__all__ = ["charts"]

MOST_COSTS, MOST_COMPARED = 6, 10
REPLICATES = 20
IDS_TOLD = (
    "IDS for every weight λ between what is meant and which words are used: where two lines cross, the order "
    "of the systems depends on the weight."
)
CLAIMS_TOLD = (
    "How many different claims are on the table at each position (a round in which somebody speaks), and how "
    "many of them go beyond the task's text: a falling line is information that gets lost, a rising one what "
    f"the team adds. Means over the traces that reach the position. {HEURISTIC}"
)
DAMAGE_TOLD = (
    "How far Forest Match falls, and each part of a run's similarity with itself, when a growing share of "
    "the run is damaged on purpose; bands are two standard errors. A flat line is damage that the measure "
    "does not notice."
)


def charts(scores: Scores, seen: Sequence[Seen]) -> Iterator[str]:
    if curves := _curves(scores):
        yield picture(ids_svg(curves, alone=False), "IDS of each system over lambda", IDS_TOLD)
    yield from _claims(seen)
    for system in scores.systems[:MOST_COSTS]:
        if svg := _cost(system, [one.found.spent for one in seen if one.found and one.system == system]):
            yield picture(svg, "Cost by agent")
    if len(scores.systems) > MOST_COSTS:
        more = len(scores.systems) - MOST_COSTS
        yield f'<p class="more">{more:,} more systems have no chart of costs here.</p>'
    yield from _comparison(scores)
    yield from _damage(scores, seen)


def _comparison(scores: Scores) -> Iterator[str]:
    if len(scores.systems) < 2:
        return
    try:
        found = compare(scores)
    except CounterpointError as error:
        yield f'<p class="note">The systems could not be compared: {inline(str(error), 500)}</p>'
        return
    for pair in found.pairs[:MOST_COMPARED]:
        rows = [row for row in found.rows if (row.label_a, row.label_b) == (pair.a, pair.b)]
        title = f"{pair.b} against {pair.a}, {pair.tasks:,} task{'s'[: pair.tasks != 1]}"
        part = type(found)(rows, [pair], found.sides, found.warnings, found.tests, found.level)
        yield picture(comparison_svg(part, title=title, alone=False), "Differences between systems")
    if len(found.pairs) > MOST_COMPARED:
        more = len(found.pairs) - MOST_COMPARED
        yield f'<p class="more">{more:,} more pairs: counterpoint compare shows all.</p>'


def _claims(seen: Sequence[Seen]) -> Iterator[str]:
    """Mean counts of each system at each position, over its traces that have one."""
    found: dict[str, list[list[tuple[float, float]]]] = {}
    looked = [one for one in seen if one.claims is not None]
    for one in looked:
        for position, pair in enumerate(one.claims.counts if one.claims else ()):
            columns = found.setdefault(one.system or "(no name)", [])
            if position == len(columns):
                columns.append([])
            columns[position].append(pair)
    if not found:
        return
    means = {
        system: [(fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs)) for pairs in columns]
        for system, columns in found.items()
    }
    left = sum(not one.claims.counts for one in looked if one.claims)
    missing = (
        f" {left:,} of {len(looked):,} traces are not in it: no claims were told of them." if left else ""
    )
    yield picture(
        claims_svg(means, alone=False), "Claims of each system over positions", CLAIMS_TOLD + missing
    )


def _damage(scores: Scores, seen: Sequence[Seen]) -> Iterator[str]:
    """Curves of the first short traces against the forest that the report was made with."""
    signature = next(
        (row.signature for row in scores.rows if row.metric.partition("(")[0] == "forest_match"), None
    )
    traces = [one.sample for one in seen if one.sample is not None]
    if signature is None or not signature.get("forest") or not traces:
        return
    try:
        curves = _curves_of_damage(traces, signature)
    except CounterpointError as error:
        yield f'<p class="note">There are no damage curves: {inline(str(error), 500)}</p>'
        return
    told = f"{DAMAGE_TOLD} Tried on {len(traces)} trace{'s'[: len(traces) != 1]}, {REPLICATES} times each."
    yield picture(damage_svg(curves, alone=False), "Damage curves of Forest Match", told)


def _curves_of_damage(traces: Sequence[Trace], signature: Mapping[str, Any]) -> Sequence[Curve]:
    contexts = [
        Context(trace, CollaborationGraph(trace, evidence=signature["evidence"]), signature["profile"])
        for trace in traces
    ]
    how = {"roles": signature["roles"], "leave_out": signature["leave_out"]}
    return damage_report(contexts, signature["forest"], **how, replicates=REPLICATES, draws=0).curves


def _curves(scores: Scores) -> dict[str, Score]:
    """Of each system: mean IDS with its two halves, for a curve over λ."""
    halves: dict[str, list[Row]] = {}
    first = next((name for name in scores.metrics if name.partition("(")[0] == "ids"), None)
    for row in scores.rows:
        if row.metric == first and row.value is not None and {"syntactic", "semantic"} <= set(row.parts):
            halves.setdefault(row.system, []).append(row)
    return {
        system or "(no name)": Score(
            fmean(row.value or 0.0 for row in rows),
            {part: fmean(float(row.parts[part]) for row in rows) for part in ("syntactic", "semantic")},
        )
        for system, rows in halves.items()
    }


def _cost(system: str, seen: Sequence[Costs]) -> str:
    """Dollars by agent over a system's observed traces where all are known, else tokens, else empty."""
    for unit in ("USD", "tokens"):
        amounts: dict[str, float] = {}
        for spent in seen:
            calls = spent.calls
            values = calls.usd if unit == "USD" else calls.tokens
            for speaker, value in zip(calls.speakers.tolist(), values.tolist(), strict=True):
                if speaker >= 0:
                    name = spent.agents[speaker]
                    amounts[name] = amounts.get(name, 0.0) + value
        if amounts and not np.isnan(list(amounts.values())).any() and any(amounts.values()):
            what = "Dollars" if unit == "USD" else "Tokens"
            name = f" of {system}" if system.strip() else ""
            return cost_svg(amounts, title=f"{what} by agent{name}", unit=unit, alone=False)
    return ""
