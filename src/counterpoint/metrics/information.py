"""Information that agents hold about the team's next answer: emergence, synergy, transfer; in bits.

Conventions
-----------
* Observations are discrete: any labels, one an entry, equal iff they are the same outcome. `discrete` makes
  answers into such labels. Entries of all arguments at one place belong to one moment (or one run).
* Entropies are corrected for bias by Miller and Madow [1]_: plus ``(outcomes seen - 1) / (2 n ln 2)``.
* With ``permutations`` (at least 200 for a figure to rely on), observations are shuffled so that nothing but
  chance connects them; the mean over shuffles is subtracted from the value, and ``p`` is the share of them
  (the data themselves counted in) that are at least as large.

What counts
-----------
Fewer than `PER_OUTCOME` observations for each joint outcome seen are too few: the result is undefined and
says how many there are. Most single runs are too short; pool the rounds of many runs of one system.

Differences from the papers
---------------------------
Emergence [2]_ is the first-order sufficient criterion for a given macro variable. Redundancy of the partial
decomposition is minimum mutual information (MMI). Transfer entropy looks one step back, and its shuffles
exchange sources only among moments with the same past of the target, which keeps what target and source
share.

.. [1] Miller 1955: Note on the bias of information estimates.
.. [2] Rosas, Mediano et al. 2020: Reconciling emergences. As used by Riedl (arXiv:2510.05174).
.. [3] Williams and Beer 2010 (partial information decomposition); Barrett 2015 (MMI).
.. [4] Schreiber 2000: Measuring information transfer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from counterpoint.answers import same_answer
from counterpoint.errors import UsageError
from counterpoint.metrics.near import codes
from counterpoint.score import Score

__all__ = [
    "discrete",
    "emergence",
    "mutual_information",
    "partial_information",
    "transfer_entropy",
]

Codes = NDArray[np.int64]

PER_OUTCOME = 5
"""So many observations are needed for each joint outcome."""

PERMUTATIONS = 200


def mutual_information(x: Sequence[Hashable], y: Sequence[Hashable], *, corrected: bool = True) -> float:
    """Mutual information ``I(X; Y) = H(X) + H(Y) - H(X, Y)`` of the observations, in bits.

    Parameters
    ----------
    x, y: labels, (n,) each.
    corrected: by Miller and Madow; may then be below 0.

    Raises
    ------
    UsageError: no observation, or unequal numbers of them.

    >>> mutual_information([0, 0, 1, 1], [0, 0, 1, 1], corrected=False)
    1.0
    """
    first, second = _observations(x=x, y=y)
    return _mutual(first, second, corrected)


def emergence(
    macro: Sequence[Hashable],
    next_macro: Sequence[Hashable],
    agents: Sequence[Sequence[Hashable]],
    *,
    corrected: bool = True,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Score:
    """Emergence Ψ: what the whole says about its next state beyond what its members say, one by one.

    ``Ψ = I(V_t; V_t+1) - Σ_j I(X_j,t; V_t+1)``, in bits.

    Parameters
    ----------
    macro, next_macro: V_t and V_t+1, the team's answer at a moment and at the next, (n,).
    agents: X_j,t, each agent's answer at the moment, a sequence (n,) an agent.
    corrected: entropies by Miller and Madow.
    permutations: shuffles of V_t+1 against the rest; 0 subtracts nothing and gives no p.
    seed: of the shuffles.

    Returns
    -------
    Score in bits: above 0 is sufficient for emergence, below 0 says nothing. Parts ``estimate`` (before the
    mean over shuffles, ``null``, is subtracted), ``whole``, ``members``, ``n``, and ``p``. Undefined with too
    few observations.

    >>> a, b = [0, 0, 1, 1] * 5, [0, 1, 0, 1] * 5
    >>> odd = [i ^ j for i, j in zip(a, b)]
    >>> emergence(odd, odd, [a, b], corrected=False, permutations=0).value
    1.0
    >>> emergence(a, a, [a, a], corrected=False, permutations=0).value
    -1.0
    """
    if not agents:
        raise UsageError("agents: at least one sequence of answers is needed")
    now, then, *members = _observations(
        macro=macro, next_macro=next_macro, **{f"agent {at}": labels for at, labels in enumerate(agents)}
    )
    too_few = _too_few(now, then, *members)
    if too_few:
        return too_few

    def measure(target: Codes) -> dict[str, float]:
        whole = _mutual(now, target, corrected)
        parts = sum(_mutual(member, target, corrected) for member in members)
        return {"estimate": whole - parts, "whole": whole, "members": parts}

    return _against_chance(measure, then, _shuffled, permutations, seed)


def partial_information(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    target: Sequence[Hashable],
    *,
    corrected: bool = True,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Score:
    """Synergy of two agents about a target, and what else they tell: partial information by MMI.

    ``Red = min(I_1, I_2)``, ``Unq_k = I_k - Red``, ``Syn = I_12 - I_1 - I_2 + Red``, with I_k the information
    of agent k, and I_12 that of both together, about the target, in bits.

    Parameters
    ----------
    first, second: answers of the two agents, (n,).
    target: what they are about: the team's answer, the right one, (n,).
    corrected, permutations, seed: as in `emergence`; the target is shuffled.

    Returns
    -------
    Score, the synergy in bits. Parts ``estimate`` (before the mean over shuffles, ``null``, is subtracted),
    ``redundancy``, ``unique_first``, ``unique_second``, ``n``, ``p``. Undefined with too few observations.

    >>> a, b = [0, 0, 1, 1] * 5, [0, 1, 0, 1] * 5
    >>> both = [i & j for i, j in zip(a, b)]
    >>> score = partial_information(a, b, both, corrected=False, permutations=0)
    >>> score.value, score.parts["redundancy"]
    (0.5, 0.311278)
    """
    one, two, aim = _observations(first=first, second=second, target=target)
    too_few = _too_few(one, two, aim)
    if too_few:
        return too_few
    together = _joint(one, two)

    def measure(shuffled: Codes) -> dict[str, float]:
        alone = _mutual(one, shuffled, corrected), _mutual(two, shuffled, corrected)
        redundancy = min(alone)
        return {
            "estimate": _mutual(together, shuffled, corrected) - sum(alone) + redundancy,
            "redundancy": redundancy,
            "unique_first": alone[0] - redundancy,
            "unique_second": alone[1] - redundancy,
        }

    return _against_chance(measure, aim, _shuffled, permutations, seed)


def transfer_entropy(
    source: Sequence[Hashable],
    target: Sequence[Hashable],
    next_target: Sequence[Hashable],
    *,
    corrected: bool = True,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Score:
    """Transfer entropy: what one agent's answer says about another's next one, beyond the latter's own past.

    ``TE = I(X_i,t+1; X_j,t | X_i,t)``, in bits.

    Parameters
    ----------
    source: X_j,t, answers of the agent that may influence, (n,).
    target, next_target: X_i,t and X_i,t+1, answers of the other one at the same moment and at the next, (n,).
    corrected, permutations, seed: as in `emergence`; the source is shuffled among equal ``target``.

    Returns
    -------
    Score in bits, higher is more influence. Parts ``estimate`` (before the mean over shuffles, ``null``, is
    subtracted), ``n``, and ``p``. Undefined with too few observations.

    >>> leader, follower = [0, 1, 0, 1] * 5, [0, 0, 1, 1] * 5
    >>> transfer_entropy(leader, follower, leader, corrected=False, permutations=0).value
    1.0
    """
    cause, past, effect = _observations(source=source, target=target, next_target=next_target)
    too_few = _too_few(cause, past, effect)
    if too_few:
        return too_few

    def measure(shuffled: Codes) -> dict[str, float]:
        before = _joint(shuffled, past)
        return {"estimate": _mutual(before, effect, corrected) - _mutual(past, effect, corrected)}

    def within_the_past(values: Codes, random: np.random.Generator) -> Codes:
        mixed = random.permutation(len(values))
        shuffled = np.empty_like(values)
        shuffled[np.argsort(past, kind="stable")] = values[mixed[np.argsort(past[mixed], kind="stable")]]
        return shuffled

    return _against_chance(measure, cause, within_the_past, permutations, seed)


def discrete(answers: Sequence[str | None], *, kind: str | None = None) -> list[str]:
    """Answers as labels: the first way in which each was given; an empty text where there is none.

    Parameters
    ----------
    answers: as agents gave them; None for no answer, which is an outcome too.
    kind: number, choice, text, or None; see `counterpoint.answers.same_answer`.

    >>> discrete(["145", "$145.0", None, "12"])
    ['145', '145', '', '12']
    """
    label: dict[str, str] = {}
    for answer in answers:
        if answer is not None and answer not in label:
            same = (known for known in dict.fromkeys(label.values()) if same_answer(answer, known, kind=kind))
            label[answer] = next(same, answer)
    return ["" if answer is None else label[answer] for answer in answers]


def _observations(**labels: Sequence[Hashable]) -> list[Codes]:
    sizes = {name: len(sequence) for name, sequence in labels.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise UsageError(f"observations belong together, one an entry, found unequal numbers ({found})")
    if not all(sizes.values()):
        raise UsageError("no observations: give one label a moment")
    return [codes(list(sequence)) for sequence in labels.values()]


def _joint(*observed: Codes) -> Codes:
    """A number for each joint outcome, 0 upwards."""
    joint = observed[0]
    for each in observed[1:]:
        joint = np.unique(joint * (each.max() + 1) + each, return_inverse=True)[1].reshape(-1)
    return joint


def _too_few(*observed: Codes) -> Score | None:
    outcomes, n = int(_joint(*observed).max()) + 1, len(observed[0])
    if n >= PER_OUTCOME * outcomes:
        return None
    return Score.undefined(
        f"{n} observations of {outcomes} joint outcomes: at least {PER_OUTCOME * outcomes} are needed "
        f"({PER_OUTCOME} for each); pool more runs, or use coarser answers",
        parts={"n": n, "outcomes": outcomes},
    )


def _entropy(observed: Codes, corrected: bool) -> float:
    counts = np.bincount(observed)
    shares = counts[counts > 0] / len(observed)
    plain = float(-(shares * np.log2(shares)).sum())
    return plain + (len(shares) - 1) / (2 * len(observed) * math.log(2)) if corrected else plain


def _mutual(x: Codes, y: Codes, corrected: bool) -> float:
    return _entropy(x, corrected) + _entropy(y, corrected) - _entropy(_joint(x, y), corrected)


def _shuffled(values: Codes, random: np.random.Generator) -> Codes:
    return random.permutation(values)


def _against_chance(
    measure: Callable[[Codes], dict[str, float]],
    values: Codes,
    shuffle: Callable[[Codes, np.random.Generator], Codes],
    permutations: int,
    seed: int,
) -> Score:
    """What is measured, less its mean over shuffles of ``values``."""
    if permutations < 0:
        raise UsageError(f"permutations {permutations!r} is not at least 0")
    parts: dict[str, int | float] = {**measure(values), "n": len(values)}
    if not permutations:
        return Score(parts["estimate"], parts)
    random = np.random.default_rng(seed)
    chance = np.array([measure(shuffle(values, random))["estimate"] for _ in range(permutations)])
    null = float(chance.mean())
    as_large = int((chance >= parts["estimate"] - 1e-12).sum())
    parts |= {"null": null, "p": (as_large + 1) / (permutations + 1), "permutations": permutations}
    return Score(parts["estimate"] - null, parts)
