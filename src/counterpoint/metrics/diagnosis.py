"""Why a run failed, by deterministic rules: its structure fell short, or what it said did.

Conventions
-----------
* Only failed runs are diagnosed. References are the verified runs of the same task, weighted by quality.
* Classes are coarse (``structural``, ``content``) unless the rules behind them are asked for: labels of
  failures agree with each other only moderately, and so does any rule with them. Give κ beside a comparison.

What counts
-----------
A failure is structural if its Forest Match is below the 25th percentile of the successful runs of its data
set, and content-level otherwise. The rules of a structural one:

* missing role: a role in at least half of the reference weight is absent;
* truncated: depth below half the median, or no decision where most of the reference weight has one;
* wrong motif: the right roles (s_node >= .5) joined in another way (best s_edge < .2);
* ignored work: Node Validity < 1;
* loops: Content Redundancy > .1;
* over-provision: more than twice the median number of actions.

Those of a content-level one: wrong aggregation (some action held the right answer), or no action right.

Source: ForestBench's failure classes; the rules are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from counterpoint.errors import UsageError
from counterpoint.metrics.references import ReferenceSet
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.weighting import Floats
from counterpoint.score import Score
from counterpoint.stats import cohen_kappa

__all__ = ["Diagnosis", "Symptoms", "agreement", "diagnose", "structural_threshold"]

PERCENTILE = 25
HALF = 0.5


class Symptoms(Struct, frozen=True):
    """What is known of a failed run beside its graph; None where it is not."""

    match: float | None = None
    """Forest Match, own generator left out."""
    validity: float | None = None
    """Node Validity."""
    redundancy: float | None = None
    """Content Redundancy."""
    answer_held: bool | None = None
    """Did any action commit to the right answer."""


class Diagnosis(Struct, frozen=True):
    """Why a run failed."""

    level: str
    """``structural``, ``content``, or ``undetermined`` where the match is undefined."""
    rules: Mapping[str, str]
    """Name of each rule that holds, to what was found."""

    @property
    def text(self) -> str:
        """One line: the class, then the rules that hold."""
        found = "; ".join(f"{rule} ({what})" if what else rule for rule, what in self.rules.items())
        return f"{self.level}: {found}" if found else self.level


def structural_threshold(matches: Sequence[float]) -> float:
    """The Forest Match below which a failure is structural: the 25th percentile of the successful runs'.

    Raises UsageError without a successful run.

    >>> structural_threshold([.2, .4, .6, .8, 1.0])
    0.4
    """
    if not len(matches):
        raise UsageError(
            "no successful run with a defined Forest Match: nothing to call a failure low against"
        )
    return float(np.percentile(matches, PERCENTILE))


def diagnose(
    run: RoleGraph, references: Sequence[RoleGraph], threshold: float, symptoms: Symptoms
) -> Diagnosis:
    """The class of a failed run and the rules that hold.

    Parameters
    ----------
    run: the failed run.
    references: verified runs of its task, its own generator's left out.
    threshold: as `structural_threshold` gives it.
    symptoms: what is known of the run beside its graph.
    """
    forest = references if isinstance(references, ReferenceSet) else ReferenceSet(references)
    q = forest.quality("default", np.ones(len(forest), dtype=bool))
    if symptoms.match is None or not q.any():
        return Diagnosis("undetermined", {"no match": "no verified reference to compare with"})
    if symptoms.match < threshold:
        return Diagnosis("structural", _structural(run, forest, q / q.sum(), symptoms))
    if symptoms.answer_held is None:
        return Diagnosis("content", {})
    return Diagnosis("content", {"wrong aggregation" if symptoms.answer_held else "no action right": ""})


def _structural(run: RoleGraph, forest: ReferenceSet, share: Floats, symptoms: Symptoms) -> dict[str, str]:
    """The structural rules that hold; ``share``: each reference's share of the weight."""
    found: dict[str, str] = {}
    wanted = {role: _weight(forest, share, role) for graph in forest for role in graph.role_counts}
    absent = sorted(role for role, weight in wanted.items() if weight >= HALF and role not in run.role_counts)
    if missing := [role for role in absent if role != "decision"]:
        found["missing role"] = ", ".join(missing)
    depth = _median([graph.depth for graph in forest], share)
    if run.depth < depth / 2:
        found["truncated"] = f"depth {run.depth}, median {depth:g}"
    elif "decision" in absent:
        found["truncated"] = "no decision"
    node, edge, _ = forest.components([run])
    if node.max() >= HALF and edge.max() < 0.2:
        found["wrong motif"] = f"roles {node.max():.2f}, joints {edge.max():.2f}"
    if symptoms.validity is not None and symptoms.validity < 1:
        found["ignored work"] = f"{1 - symptoms.validity:.0%} of actions read by nobody"
    if symptoms.redundancy is not None and symptoms.redundancy > 0.1:
        found["loops"] = f"{symptoms.redundancy:.0%} of actions repeated"
    size = _median([graph.n for graph in forest], share)
    if run.n > 2 * size:
        found["over-provision"] = f"{run.n} actions, median {size:g}"
    return found


def _weight(forest: ReferenceSet, share: Floats, role: str) -> float:
    """Share of the reference weight that has the role."""
    return float(sum(part for graph, part in zip(forest, share, strict=True) if role in graph.role_counts))


def _median(values: Sequence[float], share: Floats) -> float:
    """The smallest value at which half of the weight is reached."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(share[order])
    return float(values[order[int(np.searchsorted(reached, HALF - 1e-12))]])


def agreement(found: Sequence[str], labels: Sequence[str]) -> Score:
    """Cohen's kappa of diagnosed classes with labels, over the classes that occur.

    >>> agreement(["structural", "content"], ["structural", "content"]).value
    1.0
    """
    if len(found) != len(labels):
        raise UsageError(f"one label a diagnosis is needed, found {len(found)} and {len(labels)}")
    number = {name: index for index, name in enumerate(sorted({*found, *labels}))}
    table = np.zeros((len(number), len(number)))
    for one, other in zip(found, labels, strict=True):
        table[number[one], number[other]] += 1
    return cohen_kappa(table)
