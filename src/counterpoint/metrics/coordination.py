"""Coordination: what working together costs, and how many voices a team really has.

Conventions
-----------
* A ratio is a number, not a percentage: an overhead of 1.85 is 185 %.
* Turns are turns of agents; ``single`` is one agent alone on the same task.
* Nothing to divide by is undefined, never 0 or 1.

What counts
-----------
What these numbers are on a trace of any framework: see `teamwork`.

Differences from the papers
---------------------------
In [2]_ the number of channels is taken over sampled outputs for one question; here over the agents of one
run. Communication tax and participation are ours.

.. [1] Towards a Science of Scaling Agent Systems (arXiv:2512.08296), section 4.1.
.. [2] arXiv:2602.03794: N* = 2^H of the eigenvalues of the outputs' Gram matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import UsageError
from counterpoint.score import Score

__all__ = [
    "communication_tax",
    "effective_channels",
    "efficiency",
    "error_amplification",
    "low_rank",
    "message_density",
    "output_redundancy",
    "overhead",
    "participation_gini",
]


def low_rank(adjacency: ArrayLike) -> Score:
    """Low-rank communication: the nuclear norm of the adjacency, ``sum of its singular values``.

    Parameters
    ----------
    adjacency: (n, n) array, rows are sources; 0/1, or weights.

    Returns
    -------
    Score in [0, inf); lower is a simpler pattern of who hears whom. Part ``rank``. Undefined without a node.

    Raises
    ------
    UsageError: no finite (n, n) array.

    >>> low_rank([[0, 1], [0, 0]]).value, round(low_rank([[1, 1], [1, 1]]).value, 12)
    (1.0, 2.0)
    """
    matrix = np.asarray(adjacency, dtype=np.float64)
    if matrix.size == 0:
        return Score.undefined("there is no agent, and so no pattern of communication")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise UsageError(f"an adjacency is a finite (n, n) array, found shape {matrix.shape}")
    values = np.linalg.svd(matrix, compute_uv=False)
    return Score(float(values.sum()), {"rank": int(np.linalg.matrix_rank(matrix))})


def overhead(turns_mas: float, turns_single: float) -> Score:
    """Coordination overhead: ``O = (T_MAS - T_SAS) / T_SAS``.

    Parameters
    ----------
    turns_mas, turns_single: turns that the team and the single agent took, at least 0.

    Returns
    -------
    Score of at least -1, lower is better: 0 means as many turns as alone. Undefined without turns alone.

    >>> overhead(57, 20).value
    1.85
    """
    team, alone = _amount("turns_mas", turns_mas), _amount("turns_single", turns_single)
    if not alone:
        return Score.undefined("the single agent took no turn: there is nothing to compare with")
    return Score((team - alone) / alone, {"turns_mas": team, "turns_single": alone})


def efficiency(success: float, turns_mas: float, turns_single: float) -> Score:
    """Coordination efficiency: ``E_c = S / (T_MAS / T_SAS)``.

    Parameters
    ----------
    success: S, the team's success rate, in [0, 1].
    turns_mas, turns_single: as in `overhead`.

    Returns
    -------
    Score of at least 0, higher is better. Undefined where either took no turn.

    >>> efficiency(0.6, 57, 20).value
    0.210526
    """
    share = _amount("success", success, most=1)
    team, alone = _amount("turns_mas", turns_mas), _amount("turns_single", turns_single)
    if not (team and alone):
        return Score.undefined(f"{'the single agent' if team else 'the team'} took no turn")
    return Score(share * alone / team, {"success": share, "turns_mas": team, "turns_single": alone})


def error_amplification(error_mas: float, error_single: float) -> Score:
    """Error amplification: ``A_e = E_MAS / E_SAS``.

    Parameters
    ----------
    error_mas, error_single: error rates of the team and of the single agent, in [0, 1].

    Returns
    -------
    Score of at least 0, lower is better: above 1 the team makes more errors than one agent alone. Undefined
    where the single agent makes none.

    >>> error_amplification(0.4, 0.2).value
    2.0
    """
    team, alone = _amount("error_mas", error_mas, most=1), _amount("error_single", error_single, most=1)
    if not alone:
        return Score.undefined("the single agent makes no error: there is none to amplify")
    return Score(team / alone, {"error_mas": team, "error_single": alone})


def message_density(messages: float, turns: float) -> Score:
    """Message density: ``c = messages between agents / turns``.

    Parameters
    ----------
    messages: transfers of a text to another agent, at least 0; a text that two read is two.
    turns: turns of agents, at least 0.

    Returns
    -------
    Score of at least 0; neither end is better. Undefined without turns.

    >>> message_density(6, 4).value
    1.5
    """
    sent, taken = _amount("messages", messages), _amount("turns", turns)
    if not taken:
        return Score.undefined("nobody took a turn")
    return Score(sent / taken, {"messages": sent, "turns": taken})


def output_redundancy(vectors: ArrayLike) -> Score:
    """Output redundancy: ``R = mean cosine over the pairs of outputs``, in time linear in their number.

    Parameters
    ----------
    vectors: (n, d), one row an output; their lengths do not matter.

    Returns
    -------
    Score in [-1, 1], lower is more varied; parts ``outputs`` and ``invalid`` (rows that are zero or not
    finite, left out). Undefined with fewer than two.

    >>> output_redundancy([[1, 0], [2, 0], [0, 1]]).value
    0.333333
    """
    rows, invalid = _directions(vectors)
    n, parts = len(rows), {"outputs": len(rows), "invalid": invalid}
    if n < 2:
        return Score.undefined("fewer than two outputs: redundancy is between two", parts=parts)
    sum_of_all = rows.sum(axis=0)
    mean = float(sum_of_all @ sum_of_all - n) / (n * (n - 1))
    return Score(min(max(-1.0, mean), 1.0), parts)


def effective_channels(vectors: ArrayLike, correct: Sequence[bool] | None = None) -> Score:
    """Effective channels: how many independent voices the outputs amount to.

    ``N* = 2^H(λ)``, H the entropy in bits of the eigenvalues λ of the outputs' Gram matrix, scaled to sum 1.
    With ``correct``, ``N*_eff = N*_correct - N*_wrong / 2`` over the right and the wrong ones.

    Parameters
    ----------
    vectors: (n, d), one row an output; their lengths do not matter.
    correct: whether each output is right, (n,).

    Returns
    -------
    Score in [1, n], higher is more varied: 1 where all say the same, n where no two have anything in common.
    Parts ``outputs``, ``invalid`` (rows that are zero or not finite, left out), and with ``correct`` also
    ``correct``, ``wrong`` and ``effective``. Undefined without an output.

    >>> round(effective_channels([[1, 0], [0.5, 3 ** 0.5 / 2]]).value, 6)
    1.754765
    """
    rows, invalid = _directions(vectors)
    parts: dict[str, int | float] = {"outputs": len(rows), "invalid": invalid}
    if not len(rows):
        return Score.undefined("no output with a direction: there is no voice to count", parts=parts)
    if correct is not None:
        right = np.asarray(correct, dtype=bool)
        if right.shape != (len(rows) + invalid,):
            raise UsageError(
                f"correct: {right.size} entries for {len(rows) + invalid} outputs, one each is needed"
            )
        everything, _ = _directions(vectors, keep=True)
        parts["correct"], parts["wrong"] = _channels(everything[right]), _channels(everything[~right])
        parts["effective"] = parts["correct"] - parts["wrong"] / 2
    return Score(_channels(rows), parts)


def participation_gini(amounts: ArrayLike) -> Score:
    """Participation: the Gini coefficient of what agents contribute.

    ``G = Σ_i Σ_j |x_i - x_j| / (2 n² mean(x))``

    Parameters
    ----------
    amounts: one an agent, (n,), at least 0: tokens, claims, turns.

    Returns
    -------
    Score in [0, 1): 0 where all contribute the same, 1 - 1/n where one contributes all. Neither end is
    better. Undefined where nobody contributes.

    >>> participation_gini([1, 1, 4]).value
    0.333333
    """
    values = np.sort(np.asarray(amounts, dtype=np.float64).ravel())
    if not np.isfinite(values).all() or (values < 0).any():
        raise UsageError("amounts are finite numbers of at least 0, one an agent")
    n, whole = len(values), float(values.sum())
    if not whole:
        return Score.undefined("nobody contributed anything", parts={"agents": n})
    # The sorted form of the double sum: each value is larger than those before it.
    gini = float((2 * np.arange(1, n + 1) - n - 1) @ values) / (n * whole)
    return Score(max(0.0, gini), {"agents": n, "total": whole})


def communication_tax(copied: float, total: float) -> Score:
    """Communication tax: ``prompt tokens copied from other agents / all tokens``; ours.

    Parameters
    ----------
    copied: tokens of other agents' texts in prompts, at least 0 and at most ``total``.
    total: tokens in and out of all model calls.

    Returns
    -------
    Score in [0, 1], lower is better. Undefined without tokens.

    >>> communication_tax(30, 120).value
    0.25
    """
    whole = _amount("total", total)
    part = _amount("copied", copied, most=whole)
    if not whole:
        return Score.undefined("no tokens were used")
    return Score(part / whole, {"copied": part, "tokens": whole})


def _amount(name: str, value: float, most: float = math.inf) -> float:
    if not (isinstance(value, int | float | np.number) and 0 <= value <= most and math.isfinite(value)):
        limit = "of at least 0" if most == math.inf else f"in [0, {most:g}]"
        raise UsageError(f"{name} is a number {limit}, found {value!r}")
    return value if isinstance(value, int) else float(value)


def _directions(vectors: ArrayLike, keep: bool = False) -> tuple[NDArray[np.float64], int]:
    """Rows of length 1, without those that have no direction (zero rows, where ``keep``); and how many."""
    rows = np.asarray(vectors, dtype=np.float64)
    if not rows.size:
        return np.empty((0, 0)), 0
    if rows.ndim != 2:
        raise UsageError(f"vectors are an (n, d) array, found shape {rows.shape}")
    peaks = np.abs(rows).max(axis=1)
    good = np.isfinite(peaks) & (peaks > 0)
    rows = np.where(good[:, None], rows, 0) / np.where(good, peaks, 1)[:, None]  # no square may overflow
    lengths = np.where(good, np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1)
    rows = rows / lengths[:, None]
    return (rows if keep else rows[good]), int((~good).sum())


def _channels(rows: NDArray[np.float64]) -> float:
    """2^H of the eigenvalues of the Gram matrix of unit rows; 0 without any."""
    whole = float(np.einsum("ij,ij->", rows, rows))
    if not whole:
        return 0.0
    gram = (
        rows @ rows.T if len(rows) <= rows.shape[1] else rows.T @ rows
    )  # the same eigenvalues but for zeros
    shares = np.linalg.eigvalsh(gram) / whole
    shares = shares[shares > 1e-12]
    return min(max(1.0, 2 ** float(-(shares * np.log2(shares)).sum())), len(rows))
