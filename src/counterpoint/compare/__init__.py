"""Is B better than A? Metrics paired by task: differences, intervals, tests, and a verdict in words.

    print(compare(scores_a, scores_b, delta={"accuracy": 0.02}))

Conventions
-----------
* A difference is b - a, and a verdict is about b: ``better`` means that b is better than a. Which way is
  better is the metric's to say; where it says nothing the words are ``higher`` and ``lower``.
* Systems are paired by name; where an input holds one system only, it meets each of the other input. One
  input alone is compared within: each of its systems with each.
* The unit is the task: seeds and repetitions are averaged first. See `counterpoint.compare.pairing`.
* p is of the sign-flip test, the interval a bootstrap over tasks; see `counterpoint.stats`.

What counts
-----------
Holm's correction is over every test of the comparison: all metrics of all pairs. A metric whose pairs are all
equal makes no test, since no outcome of it could be significant (Tarone, Biometrics 46, 1990).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from counterpoint import stats
from counterpoint.compare.matches import Match, matches
from counterpoint.compare.result import Baseline, ComparedPair, ComparedSide, Comparison, Difference
from counterpoint.compare.sides import Scored, Side, check_signatures, labels, sides_of
from counterpoint.compare.verdict import Draft, Tested, drafts, p_same, p_values, row
from counterpoint.errors import UsageError
from counterpoint.registry import suggest

__all__ = ["Baseline", "ComparedPair", "ComparedSide", "Comparison", "Difference", "compare"]


def compare(
    a: Scored,
    *others: Scored,
    delta: float | Mapping[str, float] | None = None,
    paired: bool = True,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Every metric of two or more evaluations, task by task, with a verdict.

    Parameters
    ----------
    a, others: Scores of the runs to compare, each with those after it; one alone is compared within.
    delta: the largest difference that does not matter, for every metric or ``{metric: delta}``; with it "the
        same" can be concluded too.
    paired: False compares the means of independent samples, for sides that ran different tasks.
    names: what to call the inputs; None: their runs, or A, B, C.
    level: of the intervals; ``1 - level`` is the error that all verdicts together may make.

    Returns
    -------
    Comparison: ``rows`` (metric, a, b, difference, ci_low, ci_high, p, p_holm, n, verdict) and ``pairs``;
    ``print`` it to read it.

    Raises
    ------
    UsageError: signatures that differ in anything but the run (the field is named); no task or no system in
    common; no traces; a value that is NaN; a delta that is not above 0 or names no metric.
    """
    if not 0.5 < level < 1:
        raise UsageError(f"level {level} is not between 0.5 and 1: 0.95 means 95 %")
    inputs = [a, *others]
    sources = labels(inputs, names)
    sides = _labeled(
        [side for scores, source in zip(inputs, sources, strict=True) for side in sides_of(scores, source)]
    )
    check_signatures(sides)
    found = matches(sides, paired=paired)
    deltas = _deltas(delta, list(dict.fromkeys(name for match in found for name in match.metrics)))
    drafted = [draft for match in found for draft in drafts(match)]
    p = p_values(drafted, seed)
    same = [p_same(draft, deltas.get(draft.metric)) for draft in drafted]
    tests = sum(value is not None for value in p)
    rows = [
        row(draft, Tested(raw, holm, alike, 1 - level, max(1, tests)), deltas.get(draft.metric), seed)
        for draft, raw, holm, alike in zip(drafted, p, _holm(p), _holm(same), strict=True)
    ]
    return Comparison(
        rows=rows,
        pairs=[match.described() for match in found],
        sides=[
            ComparedSide(side.label, side.source, side.system, len(side.tasks), len(side.by_task))
            for side in sides
        ],
        warnings=list(dict.fromkeys([*_left_out(found, sides), *_undefined(drafted), *_unread(sides)])),
        tests=tests,
        level=level,
    )


def _labeled(sides: list[Side]) -> list[Side]:
    """Sides named by their input, by their system, or by both: as short as tells them apart."""
    sources = {side.source for side in sides}
    if len(sources) == len(sides):
        return [replace(side, label=side.source) for side in sides]
    if len(sources) == 1:
        return [replace(side, label=side.system or "(no system)") for side in sides]
    return [replace(side, label=f"{side.source}: {side.system or '(no system)'}") for side in sides]


def _deltas(delta: float | Mapping[str, float] | None, metrics: Sequence[str]) -> dict[str, float]:
    if delta is None:
        return {}
    chosen = dict(delta) if isinstance(delta, Mapping) else dict.fromkeys(metrics, delta)
    for name, value in chosen.items():
        if name not in metrics:
            raise UsageError(
                f"delta for {name!r}, which is not compared{suggest(name, metrics)}; compared are: "
                f"{', '.join(metrics)}"
            )
        if not (value > 0 and math.isfinite(value)):
            raise UsageError(
                f"delta for {name} is the largest difference that does not matter, above 0: {value}"
            )
    return chosen


def _holm(p: Sequence[float | None]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in stats.holm(p).tolist()]


def _left_out(found: Sequence[Match], sides: Sequence[Side]) -> Iterator[str]:
    """What was not compared, or averaged first."""
    compared = [side.label for match in found for side in (match.a, match.b)]
    for side in sides:
        if side.label not in compared:
            yield f"{side.label} is compared with nothing: no other input holds a system of that name"
    for match in found:
        names = f"{match.a.label} and {match.b.label}"
        for side, other in ((match.a, match.b), (match.b, match.a)):
            if missing := [name for name in side.values if name not in other.values]:
                yield f"only in {side.label}, so not compared with {other.label}: {', '.join(missing)}"
        if match.pairing is not None and match.pairing.repeated:
            yield f"{names}: {match.pairing.repeated} tasks have several traces of one seed: averaged"
        if match.single is not None and match.single.tokens_ratio is None:
            yield f"{names}: the token budget of {match.single.side.label} is unknown (tokens_in, tokens_out)"


def _undefined(drafted: Sequence[Draft]) -> Iterator[str]:
    for draft in drafted:
        if draft.undefined and draft.n:
            tasks = draft.n + draft.undefined
            yield f"{draft.metric}: {draft.undefined} of {tasks} tasks left out, {draft.why_undefined}"


def _unread(sides: Sequence[Side]) -> Iterator[str]:
    told = "accuracy counts final answers that could not be read as wrong"
    for side in sides:
        if side.unread:
            yield f"{side.label}: {told}: {side.unread}"
