"""The charts of a report: diversity over the weight of words, claims over positions, cost, differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

import numpy as np

from counterpoint.compare import compare
from counterpoint.errors import CounterpointError
from counterpoint.metrics.costs import Costs
from counterpoint.score import Row, Score
from counterpoint.scores import Scores
from counterpoint.view.markup import inline, picture
from counterpoint.view.pictures import comparison_svg, cost_svg, ids_svg
from counterpoint.view.report_trace import Seen

__all__ = ["charts"]

MOST_COSTS = 6


def charts(scores: Scores, seen: Sequence[Seen]) -> Iterator[str]:
    if curves := _curves(scores):
        yield picture(ids_svg(curves, alone=False), "IDS of each system over lambda")
    for system in scores.systems[:MOST_COSTS]:
        if svg := _cost(system, [one.found.spent for one in seen if one.found and one.system == system]):
            yield picture(svg, "Cost by agent")
    if len(scores.systems) > MOST_COSTS:
        more = len(scores.systems) - MOST_COSTS
        yield f'<p class="more">{more:,} more systems have no chart of costs here.</p>'
    if len(scores.systems) > 1:
        try:
            found = compare(scores)
        except CounterpointError as error:
            yield f'<p class="note">The systems could not be compared: {inline(str(error), 500)}</p>'
            return
        for pair in found.pairs[:10]:
            rows = [row for row in found.rows if (row.label_a, row.label_b) == (pair.a, pair.b)]
            title = f"{pair.b} against {pair.a}, {pair.tasks} tasks"
            part = type(found)(rows, [pair], found.sides, found.warnings, found.tests, found.level)
            yield picture(comparison_svg(part, title=title, alone=False), "Differences between systems")
        if len(found.pairs) > 10:
            yield f'<p class="more">{len(found.pairs) - 10:,} more pairs: counterpoint compare shows all.</p>'


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
