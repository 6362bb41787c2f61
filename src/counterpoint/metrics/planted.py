"""Information survival: do facts that were planted in a run reach its final output?

Conventions
-----------
* Facts are short texts. A step carries a fact if the fact's words stand in its text, in order and together.
* Steps are nodes in time order, edges the transfers between agents.

What counts
-----------
* The value is the share of facts that the final output carries: the last decision step (and the recorded
  answer); without a decision, the last step of an agent.
* A hand-over is a step that heard a carrier; it succeeds if the step carries the fact itself. Shares of
  successes are given by hop (``hop_1``: the heard carrier is an origin, which had not heard the fact from
  anyone) and by how many others the step heard (``heard_1``, ``heard_2``, ...): where many texts merge, facts
  get lost.
* On a trace, facts are ``labels["planted"]``: a text, a list of texts, or {name: text}.

Differences from the paper
--------------------------
The paper names the quantity; the formulas are ours.

Source: AgentCollabBench (arXiv:2605.08647), information survival.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.contracts import Context, Metric
from counterpoint.errors import UsageError
from counterpoint.graph import index_edges
from counterpoint.metrics.similarity import words
from counterpoint.score import Score

__all__ = ["INFORMATION_SURVIVAL", "information_survival"]

DEEPEST = 8
"""Hops (and numbers of heard texts) from here on are counted together."""


def information_survival(carried: ArrayLike, edges: object, final: Collection[int]) -> Score:
    """Information survival: facts that a final node carries / facts; formula ours.

    Parameters
    ----------
    carried: whether each fact stands in each node's text, (facts, n) of True and False, nodes in time order.
    edges: (i, j) pairs, i < j: i's text reached j.
    final: indices of the nodes that are the output.

    Returns
    -------
    Score in [0, 1], higher is better. Parts: ``facts``, ``survived``, ``handovers``, ``kept`` (those that
    succeed), and the share of those that succeed by hop, ``hop_1`` ..., and by texts heard, ``heard_1`` ...
    (8 and more together). Undefined without facts or final nodes.

    Raises
    ------
    UsageError: edges against the order of time, or ``carried`` of another shape.

    >>> score = information_survival([[1, 1, 0], [1, 1, 1]], [(0, 1), (1, 2)], {2})
    >>> score.value, score.parts["hop_1"], score.parts["hop_2"]
    (0.5, 1.0, 0.5)
    """
    table = np.asarray(carried, dtype=bool)
    if not table.size:
        return Score.undefined("no facts were planted, or no step could carry them")
    if table.ndim != 2:
        raise UsageError(f"carried is a (facts, n) array, found shape {table.shape}")
    n, pairs = index_edges((table.shape[1], edges))
    if (pairs[:, 0] > pairs[:, 1]).any():
        raise UsageError(
            "an edge goes back in time: nodes are in time order, edges from earlier to later ones"
        )
    if not final:
        return Score.undefined("no final step: there is no output for a fact to survive in")
    hops = [[0, 0] for _ in range(DEEPEST + 1)]
    merges = [[0, 0] for _ in range(DEEPEST + 1)]
    sources: list[list[int]] = [[] for _ in range(n)]
    for source, target in pairs.tolist():
        sources[target].append(source)
    for fact in table.tolist():
        _follow(fact, sources, hops, merges)
    survived = int(table[:, sorted(final)].any(axis=1).sum())
    parts: dict[str, int | float] = {
        "facts": len(table),
        "survived": survived,
        "handovers": sum(tried for tried, _ in hops),
        "kept": sum(kept for _, kept in hops),
    }
    for name, counts in (("hop", hops), ("heard", merges)):
        parts |= {f"{name}_{at}": kept / tried for at, (tried, kept) in enumerate(counts) if tried}
    return Score(survived / len(table), parts)


def _follow(
    carried: Sequence[bool], sources: Sequence[Sequence[int]], hops: list[list[int]], merges: list[list[int]]
) -> None:
    """Count the hand-overs of one fact: [tried, kept] by hop and by number of texts heard."""
    depth: dict[int, int] = {}
    for node, heard in enumerate(sources):
        known = [depth[source] for source in heard if carried[source]]
        if known:
            for counts, at in ((hops, min(known) + 1), (merges, len(heard))):
                counts[min(at, DEEPEST)][0] += 1
                counts[min(at, DEEPEST)][1] += carried[node]
        if carried[node]:
            depth[node] = min(known) + 1 if known else 0


def _planted(context: Context) -> list[str]:
    label = context.trace.labels.get("planted")
    if isinstance(label, str):
        label = [label]
    elif isinstance(label, Mapping):
        label = list(label.values())
    return [str(fact) for fact in label if words(str(fact))] if isinstance(label, list | tuple) else []


def _information_survival(context: Context) -> Score:
    facts = _planted(context)
    if not facts:
        return Score.undefined('no planted facts: record labels["planted"], the texts that were planted')
    if context.graph.why_no_edges:
        return Score.undefined(context.graph.why_no_edges)
    steps, edges = context.graph.steps, context.graph.unrolled.edges
    texts = [step.text for step in steps]
    final = len(texts) - 1
    decision = next((step for step in reversed(context.trace.steps) if step.kind == "decision"), None)
    if decision is not None:
        # The decision is no agent: what it heard is its business, and no hand-over.
        texts.append(f"{decision.text}\n{context.trace.answer or ''}")
        final += 1
    spoken = [f" {' '.join(words(text))} " for text in texts]
    sought = [f" {' '.join(words(fact))} " for fact in facts]
    return information_survival([[fact in text for text in spoken] for fact in sought], edges, {final})


INFORMATION_SURVIVAL = Metric(
    "information_survival", 1, "share of planted facts that the final output still holds",
    _information_survival, (0, 1), "higher", "share of facts",
    "AgentCollabBench (arXiv:2605.08647); formulas ours", ("texts", "transfers"), settings=("evidence",),
)  # fmt: skip
