"""ForestBench's panel beside Forest Match: is what agents say taken up, is work left unread, is it repeated.

Conventions
-----------
* Pure functions take indices of nodes 0..n-1 in time order and (i, j) edges, i's output reached j.
* On a trace, nodes and edges are those of its role graph: turns, tool calls and decisions.
* A text that is empty is missing: its edges count in no uptake, its node in no redundancy.

What counts
-----------
* Mean Uptake (equation 7): share of transfers whose target says something like its source, by the cosine of
  their embeddings; ``soft`` is the mean cosine, ``containment`` the mean share of the source's words that the
  target repeats.
* Node Validity: share of non-terminal actions whose output anyone read.
* Content Redundancy: share of actions that repeat another one's content.
* Efficiency: actions a level and active agent (work over span, over agents).

Differences from the paper
--------------------------
The paper names the threshold of uptake and the formula of efficiency ("graph parallelism per active agent")
without giving them: .5 and (|V| / depth) / agents are ours, as are the text that is hashed and the near form.

Source: ForestBench, equation 7 and the structural panel.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.contracts import Context, Metric
from counterpoint.errors import UsageError
from counterpoint.graph import index_edges, levels, topological_order
from counterpoint.metrics.near import clusters
from counterpoint.metrics.rolegraph import RoleGraph, actions, role_graph
from counterpoint.score import Score

__all__ = [
    "content_redundancy",
    "efficiency",
    "mean_uptake",
    "near_clusters",
    "node_validity",
    "uptake_threshold",
]

NEAR = 0.95
"""Contents whose cosine is above this are near duplicates."""

_WORDS = re.compile(r"(?<!\w)-?\d+(?:[.,]\d+)*|[^\W_]+")
"""Numbers with their sign and points, and runs of letters and digits."""


def mean_uptake(cosines: ArrayLike, threshold: float = 0.5) -> Score:
    """Mean Uptake (equation 7): share of transfers with cos(e(x_u), e(x_v)) >= θ.

    Parameters
    ----------
    cosines: one an edge, in [-1, 1].
    threshold: θ, inclusive.

    Returns
    -------
    Score in [0, 1], higher means that more of what is passed on is taken up. Parts ``soft`` (mean cosine,
    negative ones as 0), ``taken_up`` and ``edges``. Undefined without edges.

    >>> score = mean_uptake([.9, .6, .4, .2])
    >>> score.value, round(score.parts["soft"], 6)
    (0.5, 0.525)
    """
    values = np.asarray(cosines, dtype=np.float64).ravel()
    if not values.size:
        return Score.undefined("no transfer between texts: nothing was passed on that could be taken up")
    if not np.isfinite(values).all():
        raise UsageError(f"cosine {int(np.argmin(np.isfinite(values)))} is not a finite number")
    taken = int((values >= threshold).sum())
    return Score(
        taken / values.size,
        {"soft": float(np.clip(values, 0, 1).mean()), "taken_up": taken, "edges": int(values.size)},
    )


def uptake_threshold(cosines: ArrayLike) -> float:
    """A threshold from the data: the 95th percentile of the cosines of pairs that no transfer joins.

    Raises UsageError without a pair.
    """
    values = np.asarray(cosines, dtype=np.float64).ravel()
    if not values.size:
        raise UsageError("no pair of texts without a transfer between them: give a threshold as a number")
    return float(np.percentile(values, 95))


def node_validity(n: int, edges: object, terminal: Collection[int] | None = None) -> Score:
    """Node Validity: NV = #{v in V⁻: some (v, u) in E} / #V⁻, V⁻ the nodes that are not terminal.

    Parameters
    ----------
    n: number of nodes.
    edges: (i, j) pairs.
    terminal: indices of the nodes whose output is the team's; None: the last node.

    Returns
    -------
    Score in [0, 1], higher means less work that nobody read; parts ``consumed`` and ``nodes`` (#V⁻).
    Undefined where every node is terminal.

    Raises
    ------
    GraphError: an edge out of range or to itself. UsageError: a terminal node out of range.

    >>> node_validity(5, [(0, 1), (1, 4), (2, 4)], {4}).value
    0.75
    """
    _, pairs = index_edges((n, edges))
    last = {n - 1} if terminal is None and n else set(terminal or ())
    if outside := sorted(node for node in last if not 0 <= node < n):
        raise UsageError(f"terminal node {outside[0]} is out of range: nodes are 0 to {n - 1}")
    inner = n - len(last)
    if not inner:
        return Score.undefined("every action is a final one: no work that others could have read")
    consumed = len(set(pairs[:, 0].tolist()) - last)
    return Score(consumed / inner, {"consumed": consumed, "nodes": inner})


def content_redundancy(texts: Sequence[str], vectors: ArrayLike | None = None) -> Score:
    """Content Redundancy: CR = 1 - #unique h(x_v) / #V over actions with content.

    h is the sha256 of the text after NFKC, case folding, and runs of spaces and punctuation made one space;
    signs and points of numbers stay.

    Parameters
    ----------
    texts: content of each action.
    vectors: (n, d) unit rows, one a text, for the near form: clusters of texts linked by a cosine > .95.

    Returns
    -------
    Score in [0, 1), lower is better; parts ``nodes``, ``unique``, ``missing`` (empty texts), and with vectors
    ``near`` (1 - clusters / nodes). Undefined without content.

    >>> content_redundancy(["Yes.", "yes", "No!", "-1", "1"]).value
    0.2
    """
    present = [index for index, text in enumerate(texts) if text.strip()]
    if not present:
        return Score.undefined("no action has content: record the texts of turns and the results of calls")
    unique = {_digest(texts[index]) for index in present}
    parts: dict[str, int | float] = {
        "nodes": len(present),
        "unique": len(unique),
        "missing": len(texts) - len(present),
    }
    if vectors is not None:
        rows = np.asarray(vectors, dtype=np.float64)[present]
        parts["near"] = (len(present) - near_clusters(rows)) / len(present)
    return Score((len(present) - len(unique)) / len(present), parts)


def near_clusters(vectors: ArrayLike, threshold: float = NEAR) -> int:
    """Number of clusters when vectors whose cosine is above ``threshold`` are linked."""
    rows = np.asarray(vectors, dtype=np.float64)
    return int(clusters(rows, threshold, window=max(1, len(rows))).max(initial=-1)) + 1


def efficiency(n: int, edges: object, agents: Sequence[Hashable]) -> Score:
    """Efficiency: (#V / depth) / #agents, depth the nodes on the longest path (formula ours).

    Parameters
    ----------
    n: number of nodes.
    edges: (i, j) pairs of an acyclic graph.
    agents: one label a node: whose action it is.

    Returns
    -------
    Score above 0, higher is better: 1 when all agents always work side by side, 1 / agents for a chain, above
    1 when an agent makes calls side by side. Parts ``nodes``, ``depth``, ``agents``. Undefined without nodes.

    Raises
    ------
    GraphError: an edge out of range, to itself, or a cycle. UsageError: labels that are not one a node.

    >>> round(efficiency(5, [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)], "pabcz").value, 6)
    0.333333
    """
    _, pairs = index_edges((n, edges))
    if len(agents) != n:
        raise UsageError(f"agents: {len(agents)} labels for {n} nodes, one a node is needed")
    if not n:
        return Score.undefined("no action: nobody acted")
    topological_order(n, pairs)
    depth, active = int(levels(n, pairs).max()) + 1, len(set(agents))
    return Score(n / depth / active, {"nodes": n, "depth": depth, "agents": active})


def _digest(text: str) -> str:
    """Hash of a text's letters and numbers."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain = " ".join(_WORDS.findall(folded.replace("\u2212", "-"))) or folded.strip()
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()


# --- on traces -----------------------------------------------------------------------------------


def why_no_transfers(context: Context, graph: RoleGraph) -> str:
    """Why nothing can be said about who read whom in a trace, and what to do; empty where something can."""
    if not graph.n:
        return "the trace has no turn of an agent, no tool call and no decision"
    agents = graph.agents or ()
    if len(set(agents)) < 2 or any(agents[i] != agents[j] for i, j in graph.edges.tolist()):
        return ""
    return context.graph.why_no_edges or (
        "no transfer between agents is known: where one hears another, record `heard` with each step"
    )


def containment(source: str, target: str) -> float | None:
    """Share of the source's words that the target repeats: #(W(u) ∩ W(v)) / #W(u); None without words.

    >>> containment("The answer is 4", "so the answer: 4!")
    0.75
    """
    words = set(_WORDS.findall(source.casefold()))
    return len(words & set(_WORDS.findall(target.casefold()))) / len(words) if words else None


def _mean_uptake(context: Context, *, threshold: float | str = 0.5, kind: str = "hard") -> Score:
    if kind not in ("hard", "soft", "containment"):
        raise UsageError(f"kind {kind!r} is none of hard, soft, containment")
    graph = role_graph(context)
    reason = why_no_transfers(context, graph)
    if reason:
        return Score.undefined(reason)
    texts = [node.text for node in actions(context.graph.trace)]
    said = [bool(text.strip()) for text in texts]
    edges = [(i, j) for i, j in graph.edges.tolist() if said[i] and said[j]]
    missing = {"missing": len(graph.edges) - len(edges)}
    if kind == "containment":
        shares = [share for i, j in edges if (share := containment(texts[i], texts[j])) is not None]
        if not shares:
            return Score.undefined(NO_TEXTS, parts=missing)
        return Score(sum(shares) / len(shares), {"edges": len(shares), **missing})
    if context.embed is None:
        return Score.undefined(context.embed_missing)
    if not edges:
        return Score.undefined(NO_TEXTS, parts=missing)
    number = [index for index, present in enumerate(said) if present]
    vectors = dict(zip(number, context.embed([texts[index] for index in number]), strict=True))
    cut = _threshold(threshold, vectors, set(edges))
    score = mean_uptake([float(vectors[i] @ vectors[j]) for i, j in edges], cut)
    parts = {**score.parts, **missing, "threshold": cut}
    return Score(score.parts["soft"] if kind == "soft" else score.value, parts, score.reason)


def _threshold(threshold: float | str, vectors: Mapping[int, Any], edges: set[tuple[int, int]]) -> float:
    if isinstance(threshold, int | float):
        return float(threshold)
    if threshold != "calibrated":
        raise UsageError(f"threshold {threshold!r} is neither a number nor calibrated")
    return uptake_threshold(
        [float(vectors[i] @ vectors[j]) for i, j in combinations(vectors, 2) if (i, j) not in edges]
    )


def _node_validity(context: Context) -> Score:
    graph = role_graph(context)
    reason = why_no_transfers(context, graph)
    if reason:
        return Score.undefined(reason)
    if len(set(graph.agents or ())) < 2 and not len(graph.edges):
        return Score.undefined("one agent acts alone: what it reads of its own is no transfer")
    final = {index for index, node in enumerate(actions(context.graph.trace)) if node.kind == "decision"}
    return node_validity(graph.n, graph.edges, final or None)


def _content_redundancy(context: Context) -> Score:
    return content_redundancy([node.content for node in actions(context.graph.trace)])


def _near_redundancy(context: Context, *, threshold: float = NEAR) -> Score:
    texts = [text for node in actions(context.graph.trace) if (text := node.content).strip()]
    if context.embed is None:
        return Score.undefined(context.embed_missing)
    if not texts:
        return content_redundancy([])
    clusters = near_clusters(context.embed(texts), threshold)
    return Score((len(texts) - clusters) / len(texts), {"nodes": len(texts), "clusters": clusters})


def _efficiency(context: Context) -> Score:
    graph = role_graph(context)
    reason = why_no_transfers(context, graph)
    if reason:
        return Score.undefined(reason)
    agents = graph.agents or ()
    last: dict[str, int] = {}
    turns = []
    for index, node in enumerate(actions(context.graph.trace)):
        if node.call is None:
            if node.agent in last:
                turns.append((last[node.agent], index))
            last[node.agent] = index
    # an agent takes one turn at a time, whether or not it reads its earlier ones
    return efficiency(graph.n, [*map(tuple, graph.edges.tolist()), *turns], agents)


NO_TEXTS = "no transfer joins two texts: record what agents say and what calls return"

MEAN_UPTAKE = Metric(
    "mean_uptake", 1, "share of transfers whose target says something like its source", _mean_uptake,
    (0, 1), "higher", "share of transfers", "ForestBench, equation 7; threshold ours",
    ("texts", "transfers", "embedder"), parameters={"threshold": 0.5, "kind": "hard"}, settings=("evidence",),
)  # fmt: skip
NODE_VALIDITY = Metric(
    "node_validity", 1, "share of non-final actions whose output anyone read", _node_validity,
    (0, 1), "higher", "share of actions", "ForestBench, Node Validity", ("transfers",),
    settings=("evidence",),
)  # fmt: skip
CONTENT_REDUNDANCY = Metric(
    "content_redundancy", 1, "share of actions that repeat another one's content", _content_redundancy,
    (0, 1), "lower", "share of actions", "ForestBench, Content Redundancy; normal form ours", ("texts",),
)  # fmt: skip
NEAR_REDUNDANCY = Metric(
    "near_redundancy", 1, "share of actions that nearly repeat another one's content", _near_redundancy,
    (0, 1), "lower", "share of actions", "ours, after ForestBench's Content Redundancy",
    ("texts", "embedder"), parameters={"threshold": NEAR},
)  # fmt: skip
EFFICIENCY = Metric(
    "efficiency", 1, "actions a level and active agent: 1 where all always work side by side", _efficiency,
    (0, None), "higher", "actions a level and agent",
    "ForestBench's parallelism per active agent; formula ours", ("transfers",), settings=("evidence",),
)  # fmt: skip
