"""The metrics ``forest_match`` and ``best_similarity``: a trace against a forest file.

Conventions
-----------
* ``forest_match(forest=runs.jsonl)``; a forest is made by ``counterpoint forest build``.
* A trace is compared with the references of its own task (``scope=task``) or of every task (``scope=all``).
* The role table and the evidence level are those that the forest was made with, or the value is undefined.
* ``low`` and ``high`` bound the value over every weighting of the references; it is never shown without them.
* ``others=B`` compares the trace with the forests of B other tasks of the same data set too: ``null`` is the
  mean match with them, ``specificity`` the value less it, ``adjusted`` the share of what is left above it.

Source: ForestBench, equations 2 to 6; query specificity and the adjustment for chance are ours.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.contracts import Context, Metric
from counterpoint.errors import UsageError
from counterpoint.metrics.forestbench import forest_match
from counterpoint.metrics.forests import Forest, read_forest
from counterpoint.metrics.panel import why_no_transfers
from counterpoint.metrics.rolegraph import RoleGraph, role_graph
from counterpoint.metrics.roles import coverage, role_table
from counterpoint.score import Score

__all__ = ["BEST_SIMILARITY", "FOREST_MATCH", "chance_adjusted", "match_trace", "specificity"]


def chance_adjusted(value: float, null: float) -> Score:
    """Forest Match above chance: (FM - null) / (1 - null), null the match with forests of other tasks (ours).

    Returns
    -------
    Score at most 1; 0 where the run fits its own forest no better than others. Undefined where null is 1.

    >>> chance_adjusted(.75, .5).value
    0.5
    """
    if null >= 1:
        return Score.undefined(
            "the run matches the forests of other tasks fully: nothing is left above chance"
        )
    return Score((value - null) / (1 - null), {"null": null})


def specificity(
    graph: RoleGraph, forest: Forest, task: str, *, others: int = 5, seed: int = 0, **how: Any
) -> Score:
    """Query specificity: FM on the own task's forest less the mean FM on those of other tasks (ours).

    The other tasks are those of the same data set, ``others`` of them drawn by ``seed`` and the task's id.

    Returns
    -------
    Score in [-1, 1]; about 0 where the forest is a template of style, good for any task. Parts ``null``,
    ``others`` and, where defined, ``adjusted``. Undefined where either match is.
    """
    own = forest_match(graph, forest.of(task), **how)
    if own.value is None:
        return own
    tasks = forest.tasks_like(task)
    if len(tasks) > others:
        key = hashlib.sha256(f"{seed}:{task}".encode("utf-8", "replace")).digest()[:8]
        rng = np.random.default_rng(int.from_bytes(key, "big"))
        tasks = [tasks[index] for index in sorted(rng.choice(len(tasks), others, replace=False))]
    values = [forest_match(graph, forest.of(other), **how).value for other in tasks]
    defined = [value for value in values if value is not None]
    if not defined:
        return Score.undefined("the forest has no other task of this data set that the run could match")
    null = sum(defined) / len(defined)
    parts: dict[str, int | float] = {"null": null, "others": len(defined)}
    adjusted = chance_adjusted(own.value, null)
    if adjusted.value is not None:
        parts["adjusted"] = adjusted.value
    return Score(own.value - null, parts)


def match_trace(
    context: Context,
    *,
    forest: str = "",
    roles: str = "default",
    quality: str = "default",
    leave_out: str | None = "generator",
    scope: str = "task",
    others: int = 0,
) -> Score:
    """Forest Match of a trace, with its bounds, parts and the hashes of role table and forest."""
    if scope not in ("task", "all"):
        raise UsageError(f"scope {scope!r} is neither task nor all")
    if not forest:
        return Score.undefined(
            "no forest was given: make one with `counterpoint forest build`, "
            "then ask for forest_match(forest=FILE)"
        )
    try:
        known = read_forest(forest)
    except UsageError as error:
        if not Path(forest).is_file():
            raise  # a name mistyped: no trace can be judged by it
        return Score.undefined(str(error))
    table = role_table(roles)
    reason = _why_incomparable(known, context, table.name, table.sha256)
    if reason:
        return Score.undefined(reason)
    graph = role_graph(context, table)
    reason = why_no_transfers(context, graph)
    if reason:
        return Score.undefined(reason)
    task = graph.origin.task
    if scope == "task" and task not in known.by_task:
        return Score.undefined(
            f"the forest has no reference for task {task!r}: add verified runs of it, "
            "or compare with those of every task (scope=all)"
        )
    how: dict[str, Any] = {"quality": quality, "leave_out": leave_out, "profile": context.profile}
    score = forest_match(graph, known.of(task if scope == "task" else None), **how)
    parts = dict(score.parts)
    if "full" in parts and "loo" in parts:
        parts["self_advantage"] = parts["full"] - parts["loo"]
    parts["coverage"] = coverage(graph.roles) or 0.0
    if score.value is not None and others and scope == "task":
        contrast = specificity(graph, known, task, others=others, **how)
        if contrast.value is not None:
            parts.update({"specificity": contrast.value, **contrast.parts})
    return Score(score.value, parts, score.reason)


def _why_incomparable(forest: Forest, context: Context, name: str, sha256: str) -> str:
    """Why a forest and a trace were not read alike, and what to do; empty where they were."""
    made = forest.header
    if made.roles_sha256 != sha256:
        return (
            f"forest {forest.name} was made with role table {made.roles} ({made.roles_sha256[:12]}), "
            f"this run is read with {name} ({sha256[:12]}): give the same table (roles=FILE), "
            "or build the forest again"
        )
    if made.evidence != context.graph.evidence:
        return (
            f"forest {forest.name} was made at {made.evidence} evidence, this run is read at "
            f"{context.graph.evidence}: use --evidence {made.evidence}, or build the forest again"
        )
    return ""


def _best_similarity(context: Context, **how: Any) -> Score:
    match = match_trace(context, **how)
    if match.value is None:
        return match
    kept = {name: match.parts[name] for name in ("references", "coverage")}
    return Score(match.parts["best"], {**kept, "match": match.value})


def _resources(*, forest: str = "", roles: str = "default", **_: Any) -> dict[str, str]:
    """Hashes of the files behind the parameters, for the signature; what cannot be read is left out."""
    hashes = {}
    with contextlib.suppress(UsageError):
        hashes["roles_sha256"] = role_table(roles).sha256
    if forest:
        with contextlib.suppress(UsageError):
            hashes["forest_sha256"] = read_forest(forest).sha256
    return hashes


_PARAMETERS = {
    "forest": "",
    "roles": "default",
    "quality": "default",
    "leave_out": "generator",
    "scope": "task",
    "others": 0,
}

FOREST_MATCH = Metric(
    "forest_match", 1, "mean similarity to runs of the same task that worked, weighted by their quality",
    match_trace, (0, 1), "higher", "similarity", "ForestBench, equations 2 to 6; quality formula ours",
    ("transfers", "forest"), parameters=_PARAMETERS, settings=("evidence", "profile"), resources=_resources,
)  # fmt: skip
BEST_SIMILARITY = Metric(
    "best_similarity", 1, "similarity to the nearest run of the same task that worked",
    _best_similarity, (0, 1), "higher", "similarity", "ForestBench, equations 2 to 4",
    ("transfers", "forest"), parameters=_PARAMETERS, settings=("evidence", "profile"), resources=_resources,
)  # fmt: skip
