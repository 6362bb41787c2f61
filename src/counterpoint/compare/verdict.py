"""From paired values to a verdict in words.

The order of the questions: is the difference surely within delta; is nothing different at all; is it surely
not zero; else it is not decided, and the number of tasks is told that would decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from msgspec.structs import replace

from counterpoint import stats
from counterpoint.compare.matches import Match
from counterpoint.compare.pairing import task_means
from counterpoint.compare.result import Difference
from counterpoint.errors import CounterpointError
from counterpoint.metrics import metric
from counterpoint.stats.sample import TIE, Floats, no_variation

__all__ = ["Draft", "drafts", "p_values", "row"]

RESAMPLES = 10_000
EQUAL_ON = 10
"""Tasks without variation that are enough to call two sides the same within a delta."""
WORDS = {"higher": ("better", "worse"), "lower": ("worse", "better"), "": ("higher", "lower")}
"""Which way is better, to the words for b above a and b below a."""


@dataclass(frozen=True)
class Draft:
    """The values of one metric of one match."""

    match: Match
    metric: str
    a: Floats
    """One value a task; a and b are aligned where the match is paired."""
    b: Floats
    undefined: int
    """Tasks left out: paired ones, or those of either side."""

    @property
    def paired(self) -> bool:
        """Whether a and b are values of the same tasks."""
        return self.match.pairing is not None

    @property
    def n(self) -> int:
        """Tasks, of the smaller side."""
        return min(len(self.a), len(self.b))

    @property
    def differences(self) -> Floats:
        """``b - a`` a task; what is rounding only is 0. For paired drafts."""
        gaps = self.b - self.a
        return np.where(np.abs(gaps) <= TIE * np.maximum(np.abs(self.a), np.abs(self.b)), 0.0, gaps)

    @property
    def difference(self) -> float:
        """Of the means."""
        return float(self.differences.mean() if self.paired else self.b.mean() - self.a.mean())

    @property
    def spread(self) -> float:
        """Standard deviation that the number of tasks is reckoned with."""
        if self.paired:
            return float(self.differences.std(ddof=1))
        return math.hypot(float(self.a.std(ddof=1)), float(self.b.std(ddof=1)))

    @property
    def equal(self) -> bool:
        """Nothing differs anywhere: no test could call this significant."""
        if self.paired:
            return not self.differences.any()
        return bool(np.ptp(np.concatenate([self.a, self.b])) == 0)

    @property
    def why_undefined(self) -> str:
        """The commonest reason on the side that has one."""
        for side in (self.match.a, self.match.b):
            if counts := side.reasons.get(self.metric):
                return f"undefined in {side.label}: {max(counts, key=lambda reason: counts[reason])}"
        return "undefined on one side or the other"


def drafts(match: Match) -> Iterator[Draft]:
    """The metrics that both sides have."""
    for name in match.metrics:
        a, b = match.a.values[name], match.b.values[name]
        if match.pairing is None:
            first, second = task_means(match.a, a), task_means(match.b, b)
            tasks = len(match.a.by_task) + len(match.b.by_task)
            yield Draft(match, name, first, second, tasks - len(first) - len(second))
            continue
        first, second = match.pairing.values(a, b)
        defined = ~(np.isnan(first) | np.isnan(second))
        yield Draft(match, name, first[defined], second[defined], int((~defined).sum()))


def p_values(found: Sequence[Draft], seed: int) -> list[float | None]:
    """Sign-flip p of the paired drafts, all with the same signs; Welch's of the others. None is no test.

    A test whose every outcome is a tie is none: Holm need not answer for it (Tarone, Biometrics 46, 1990).
    """
    p: list[float | None] = [None] * len(found)
    flipped = [index for index, draft in enumerate(found) if draft.paired and draft.n and not draft.equal]
    if flipped:
        table = np.zeros((max(found[index].n for index in flipped), len(flipped)))
        for column, index in enumerate(flipped):
            table[: found[index].n, column] = found[index].differences
        # The smallest p of a sampled test has to survive a correction for all of them.
        values, _ = stats.sign_flip_tests(table, resamples=max(RESAMPLES, 40 * len(found)), seed=seed)
        for index, value in zip(flipped, values.tolist(), strict=True):
            p[index] = value
    for index, draft in enumerate(found):
        if not draft.paired and draft.n and not draft.equal:
            p[index] = stats.welch_test(draft.b, draft.a).value
    return p


def p_same(draft: Draft, delta: float | None) -> float | None:
    """p of the two one-sided tests against delta; None without a delta or variation."""
    if delta is None:
        return None
    if draft.paired:
        return stats.equivalence_test(draft.differences, delta).value
    return stats.equivalence_test(draft.b, delta, minus=draft.a).value


@dataclass(frozen=True)
class Tested:
    """The p-values of a draft."""

    p: float | None
    p_holm: float | None
    p_same: float | None
    """After correction, too."""
    alpha: float
    """The error that all verdicts together may make."""
    tests: int
    """Tests that share it."""


def row(draft: Draft, tested: Tested, delta: float | None, seed: int) -> Difference:
    """The draft with its interval and verdict."""
    empty = Difference(
        draft.metric, None, None, None, None, None, None, None, 0, "not decided",
        draft.match.a.label, draft.match.b.label, draft.undefined, draft.why_undefined,
    )  # fmt: skip
    if not draft.n:
        return empty
    level = 1 - tested.alpha
    bounds = (
        stats.interval(draft.differences, level=level, seed=seed)
        if draft.paired
        else stats.difference_interval(draft.b, draft.a, paired=False, level=level, seed=seed)
    )
    spread = draft.spread if draft.n > 1 else 0.0
    each = 1 - tested.alpha / tested.tests
    verdict = _verdict(draft, tested, delta)
    return replace(
        empty,
        a=float(draft.a.mean()),
        b=float(draft.b.mean()),
        difference=draft.difference,
        ci_low=bounds.low,
        ci_high=bounds.high,
        p=1.0 if draft.equal else tested.p,
        p_holm=1.0 if draft.equal else tested.p_holm,
        n=draft.n,
        verdict=verdict,
        reason=bounds.reason,
        rough=bounds.rough,
        n_to_decide=_n_to_decide(draft, tested, delta, spread) if verdict == "not decided" else None,
        detectable=stats.minimum_detectable_difference(spread, draft.n, level=each) if spread else None,
        effect=stats.standardized_difference(draft.b, draft.a, paired=draft.paired).value,
        p_same=tested.p_same,
        baseline=draft.match.single.mean(draft.metric) if draft.match.single else None,
    )


def _verdict(draft: Draft, tested: Tested, delta: float | None) -> str:
    enough = draft.n >= EQUAL_ON and tested.p_same is None and _constant(draft)
    if delta is not None and (
        (tested.p_same is not None and tested.p_same <= tested.alpha)
        or (enough and abs(draft.difference) < delta)
    ):
        return f"same within ±{delta:g}"
    if draft.equal and draft.n > 1:
        return f"same on all {draft.n} tasks"
    if tested.p_holm is not None and tested.p_holm <= tested.alpha:
        above, below = WORDS[_better(draft.metric)]
        return above if draft.difference > 0 else below
    return "not decided"


def _n_to_decide(draft: Draft, tested: Tested, delta: float | None, spread: float) -> int | None:
    """Tasks for power 0.8 at the level that Holm's first step leaves; never as few as there are."""
    size, each = abs(draft.difference), tested.alpha / tested.tests
    if draft.n < 2 or draft.equal:
        return None
    if delta is not None and size < delta:
        needed = stats.n_to_decide(delta - size, spread, level=1 - 2 * each)
    else:
        needed = stats.n_to_decide(size, spread, level=1 - each)
    # n sign flips give no p below 2 / 2^n.
    return None if needed is None else max(needed, draft.n + 1, math.ceil(1 - math.log2(each)))


def _constant(draft: Draft) -> bool:
    """Every task differs by the same amount."""
    return bool(no_variation([draft.differences] if draft.paired else [draft.a, draft.b]))


@cache
def _better(text: str) -> str:
    """The direction that the metric declares; empty where it is not known here."""
    try:
        return metric(text).better
    except (CounterpointError, ImportError):  # a metric of another package, which is not installed here
        return ""
