"""Does unity measure what it should? Three sorts of human data, and made cases whose truth is known [1]_.

Conventions
-----------
Each reader takes a CSV file with a header, or a mapping's rows, and gives cases: claims with known
correspondence (the same unit or statement) and stance, so that no judge stands between data and metric. A
column ``case`` splits the file into cases; a column ``reference`` gives a case its reference, else the sort
of data has its own.

What counts
-----------
* `read_units`: content units found in summaries (``agent``, ``unit``). Reference: mean pairwise Dice overlap.
* `read_ratings`: importance ratings (``agent``, ``statement``, ``rating``). Unity is then exactly the mean
  pairwise ``1 - abs(difference)`` where all rate all. Reference: 1 less the mean pairwise distance over
  common statements.
* `read_votes`: agree, disagree, pass (``voter-id``, ``comment-id``, ``vote``: 1, -1, 0, as Polis exports
  them). A pass is no claim. Reference: share of equal votes over pairs of voters and statements on which both
  vote.
* `synthetic`: traces whose agents state facts of a common pool in two wordings each: what they share is
  known, and decomposer and judge have to find it.

.. [1] RIVER, section 5: validation on summaries, importance ratings and votes.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from counterpoint.errors import UsageError
from counterpoint.metrics.river import informational_unity
from counterpoint.score import Score
from counterpoint.trace import Step, Trace

__all__ = ["Known", "agreement", "read_ratings", "read_units", "read_votes", "synthetic", "unity_of"]

Row = Mapping[str, Any]
Held = dict[str, dict[str, float]]
"""Agent to its statements, each with its stance."""


class Known(Struct, frozen=True):
    """One case: what each agent holds, and what unity is compared with."""

    case: str
    held: Mapping[str, Mapping[str, float]]
    reference: float | None


def read_units(source: str | Path | Iterable[Row]) -> list[Known]:
    """Content units of summaries: columns ``agent`` and ``unit``."""
    return _cases(source, "agent", "unit", lambda row: 1.0, _dice)


def read_ratings(source: str | Path | Iterable[Row], *, low: float = 1, high: float = 5) -> list[Known]:
    """Importance ratings from ``low`` to ``high``: columns ``agent``, ``statement`` and ``rating``."""
    if not low < high:
        raise UsageError(f"ratings go from {low} to {high}: the lower end comes first")

    def stance(row: Row) -> float:
        value = (_number(row, "rating") - low) / (high - low)
        if not 0 <= value <= 1:
            raise UsageError(f"rating {row['rating']} is not between {low} and {high}")
        return value

    return _cases(source, "agent", "statement", stance, lambda held: _agreement(held, _nearness))


def read_votes(source: str | Path | Iterable[Row]) -> list[Known]:
    """Votes: columns ``voter-id``, ``comment-id`` and ``vote`` (1 agree, -1 disagree, 0 pass)."""

    def stance(row: Row) -> float | None:
        vote = _number(row, "vote")
        if vote not in (-1, 0, 1):
            raise UsageError(f"vote {row['vote']} is none of 1 (agree), -1 (disagree), 0 (pass)")
        return None if vote == 0 else (vote + 1) / 2

    return _cases(
        source, "voter-id", "comment-id", stance, lambda held: _agreement(held, lambda a, b: float(a == b))
    )


def unity_of(case: Known) -> Score:
    """Unity of a case: two claims correspond iff they are about the same statement."""
    claims = [(agent, name, stance) for agent, held in case.held.items() for name, stance in held.items()]
    names = np.array([name for _, name, _ in claims], dtype=object)
    match = (names[:, None] == names[None, :]).astype(np.float64)
    return informational_unity(
        [agent for agent, _, _ in claims],
        [stance for _, _, stance in claims],
        match,
        agents=list(case.held),
    )


def agreement(pairs: Sequence[tuple[float | None, float | None]]) -> Score:
    """Spearman correlation of measured and reference values, undefined pairs left out.

    Returns
    -------
    Score in [-1, 1]; undefined below three pairs or without variation. Parts ``n``, ``pearson``,
    ``mean_difference`` (measured less reference).

    >>> agreement([(0.1, 0.2), (0.4, 0.5), (0.9, 0.7), (None, 0.3)]).value
    1.0
    """
    known = np.array([pair for pair in pairs if None not in pair], dtype=np.float64).reshape(-1, 2)
    if len(known) < 3 or (np.ptp(known, axis=0) < 1e-12).any():
        return Score.undefined("fewer than three cases, or all of them alike", parts={"n": len(known)})
    from scipy import stats

    parts = {
        "n": len(known),
        "pearson": float(stats.pearsonr(known[:, 0], known[:, 1]).statistic),
        "mean_difference": float((known[:, 0] - known[:, 1]).mean()),
    }
    return Score(float(stats.spearmanr(known[:, 0], known[:, 1]).statistic), parts)


PLACES = (
    "Aldea",
    "Brunn",
    "Corvo",
    "Drava",
    "Elmira",
    "Fossa",
    "Garda",
    "Hvar",
    "Ilion",
    "Jaca",
    "Kotor",
    "Lund",
)
WORDINGS = ("In {year} the dam of {place} failed.", "The dam of {place} failed in {year}.")


def synthetic(cases: int = 40, *, agents: int = 4, seed: int = 0) -> list[tuple[Trace, float]]:
    """Traces of one round, and the unity that each has by its making.

    Every agent states some facts of a pool, in one of two wordings, and fully stands behind them.
    """
    rng = random.Random(seed)
    made = []
    for number in range(cases):
        pool = [(place, 1950 + rng.randrange(60)) for place in PLACES]
        common = rng.random()
        shared = pool[: rng.randint(1, 6)]
        held: Held = {}
        steps = []
        for index in range(agents):
            facts = [fact for fact in shared if rng.random() < common]
            facts += rng.sample(pool[6:], rng.randint(1, 3))
            said = [rng.choice(WORDINGS).format(place=place, year=year) for place, year in facts]
            rng.shuffle(said)
            held[f"agent {index}"] = {place: 1.0 for place, _ in facts}
            steps.append(Step(f"s{index}", f"agent {index}", " ".join(said), round=0))
        truth = unity_of(Known(str(number), held, None)).value
        assert truth is not None  # every agent holds at least one fact
        made.append((Trace(f"synthetic {number}", tuple(steps)), truth))
    return made


def _cases(
    source: str | Path | Iterable[Row],
    agent: str,
    name: str,
    stance: Callable[[Row], float | None],
    reference: Callable[[Held], float | None],
) -> list[Known]:
    held: dict[str, Held] = {}
    given: dict[str, float] = {}
    for row in _rows(source, (agent, name)):
        case = str(row.get("case") or "")
        of_agent = held.setdefault(case, {}).setdefault(str(row[agent]), {})
        value = stance(row)
        if value is None:
            of_agent.pop(str(row[name]), None)
        else:
            of_agent[str(row[name])] = value
        if row.get("reference") not in (None, ""):
            given[case] = _number(row, "reference")
    return [Known(case, of_case, given.get(case, reference(of_case))) for case, of_case in held.items()]


def _rows(source: str | Path | Iterable[Row], needed: Sequence[str]) -> Iterable[Row]:
    where = ""
    rows: Iterable[Row]
    if isinstance(source, str | Path):
        where = f"{source}: "
        try:
            with Path(source).open(encoding="utf-8-sig", newline="") as file:
                rows = list(csv.DictReader(file))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UsageError(f"{where}could not be read as CSV: {error}") from None
    else:
        rows = source
    for number, row in enumerate(rows, 1):
        if lacking := [column for column in needed if row.get(column) in (None, "")]:
            raise UsageError(f"{where}row {number} has no {lacking[0]!r} (found: {', '.join(map(str, row))})")
        yield row


def _number(row: Row, column: str) -> float:
    try:
        return float(row[column])
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"{column} {row.get(column)!r} is no number") from None


def _nearness(a: float, b: float) -> float:
    return 1 - abs(a - b)


def _dice(held: Held) -> float | None:
    overlaps = [
        2 * len(a.keys() & b.keys()) / (len(a) + len(b)) for a, b in combinations(held.values(), 2) if a or b
    ]
    return sum(overlaps) / len(overlaps) if overlaps else None


def _agreement(held: Held, agree: Callable[[float, float], float]) -> float | None:
    pairs = combinations(held.values(), 2)
    values = [agree(a[name], b[name]) for a, b in pairs for name in a.keys() & b.keys()]
    return sum(values) / len(values) if values else None
