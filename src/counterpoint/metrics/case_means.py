"""From positions to a case: the mean of a claim metric over the positions of a trace that are defined.

Conventions
-----------
Part ``at_3`` is the value at the third position. A judgment that is missing makes a position undefined only
where it could change its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from counterpoint.metrics.discussion import Discussion
from counterpoint.score import Score

__all__ = [
    "detail_of",
    "folded",
    "missing",
    "over_positions",
    "parts_of",
    "settled",
    "why_silent",
    "why_still",
]

Floats = NDArray[np.float64]

SHOWN = 64
"""Positions whose values stand in the parts."""


def why_silent(found: Discussion) -> str:
    """Why there is nothing to judge; empty where there is."""
    if found.claims:
        return ""
    unread = next(iter(found.unread.values()), "")
    return unread or "no agent makes a claim: record what each said as the step's text"


def why_still(found: Discussion) -> str:
    """Why nothing can survive; empty where it can."""
    if found.plan.transitions:
        return ""
    return "the trace has one position: record the rounds, so that claims can survive from one to the next"


def missing(found: Discussion) -> str:
    """Why a value that needs all judgments has none."""
    return f"a judgment is missing: {found.tally.reason}"


def settled(found: Discussion, table: Floats, measure: Callable[[Floats], Score]) -> Score:
    """The score, if no missing judgment can change it; for measures that never fall as judgments rise."""
    low = measure(np.nan_to_num(table, nan=0.0))
    if not np.isnan(table).any() or low.value == measure(np.nan_to_num(table, nan=1.0)).value:
        return low
    return Score.undefined(missing(found))


def over_positions(found: Discussion, measure: Callable[[int], Score]) -> Score:
    """The mean of a score over positions; one whose texts could not be decomposed is undefined."""
    scores = [
        Score.undefined(found.unread[position]) if position in found.unread else measure(position)
        for position in range(len(found.plan.rounds))
    ]
    return folded(found, scores, {})


def folded(found: Discussion, scores: Sequence[Score], extra: Mapping[str, float]) -> Score:
    """The mean over defined scores, and of each part; parts ``at_N`` are the values."""
    values = [score.value for score in scores if score.value is not None]
    parts: dict[str, int | float] = {"defined": len(values), "positions": len(scores)}
    defined = [score for score in scores if score.value is not None]
    names = dict.fromkeys(name for score in defined for name in score.parts)
    for name in names:
        of_name = [score.parts[name] for score in defined if name in score.parts]
        parts[name] = sum(of_name) / len(of_name)
    parts |= {f"at_{n}": s.value for n, s in enumerate(scores[:SHOWN], 1) if s.value is not None}
    parts |= {**extra, **parts_of(found)}
    if not values:
        return Score.undefined(scores[0].reason if scores else "no positions", parts=parts)
    return Score(sum(values) / len(values), parts, detail=detail_of(found))


def parts_of(found: Discussion) -> dict[str, int | float]:
    """How many claims and judgments there were, and how good the filter was."""
    tally = found.tally
    parts: dict[str, int | float] = {
        "claims": len(found.claims),
        "capped": found.capped,
        "judgments": tally.judgments,
        "ambiguous": tally.ambiguous,
        "undefined_judgments": tally.undefined,
        "filtered_pairs": tally.excluded,
    }
    if tally.recall is not None:
        parts["filter_recall"] = tally.recall
    return parts


def detail_of(found: Discussion) -> dict[str, str]:
    """Who judged, and what was unusual about the trace."""
    detail = {"judge": getattr(found.judge, "id", "judge"), "decomposer": getattr(found.decomposer, "id", "")}
    if not found.source:
        detail["source"] = "none: every claim counts as an extension"
    if found.problem:
        detail["positions"] = found.problem
    return detail
