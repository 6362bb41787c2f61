"""Attribution: what each agent, edge and step of one run cost, carried and contributed.

Conventions
-----------
* Nodes are steps, as the profile ``strict`` has them. Tokens and dollars are those of `costs`; paths those of
  `gemmas`, counted exactly; None is unknown or undefined, and ``reasons`` says why.
* A path is unnecessary where too few of its steps are correct, as in UPR; in a run without a gold answer,
  where too few are useful, as in ``upr_uptake``. ``judged_by`` says which.

What counts
-----------
* Path load: of a step, the paths through it; of an agent, the paths through any of its steps; of an edge
  between agents, the paths through its transfers, each path as often as it crosses the edge. So edge loads
  sum to the transfers on all paths: ``sum over lengths l of (l - 1) N(l)``.
* Diversity: IDS of the run without the agent, edge or step, its vocabulary fitted anew to what is left.
* Shapley value and leave-one-out of agents, under the value of a vote among their last recorded answers: the
  share of right ones among the winners; in a run without a gold answer, 1 where the run's own answer wins,
  its share of a tie. Exact to 12 agents, sampled with an interval above.

Source: [1]_ and Shapley, see `shapley`; the loads are ours.

.. [1] Lee et al. GEMMAS (arXiv:2507.13190), eq. 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from counterpoint.contracts import Context
from counterpoint.graph import Edges, View
from counterpoint.metrics.correctness import step_correctness
from counterpoint.metrics.costs import Costs, costs, repeated_shares
from counterpoint.metrics.diversity import information_diversity
from counterpoint.metrics.gemmas import IDS, UPR
from counterpoint.metrics.paths import PathQuestion, count, load, node_load
from counterpoint.metrics.shapley import Estimate, leave_one_out, shapley, shapley_intervals
from counterpoint.metrics.uptake import uptake
from counterpoint.metrics.worth import Worth, worth_of_agents

__all__ = [
    "AgentShare",
    "Attribution",
    "EdgeShare",
    "Estimate",
    "StepShare",
    "attribute",
    "leave_one_out",
    "shapley",
    "shapley_intervals",
]


MOST_TEXTS = 10_000
"""Texts, once for each part that is left out, up to which diversity without it is computed."""

Key = TypeVar("Key")


class StepShare(Struct, frozen=True):
    """What one step of an agent cost and carried."""

    step: str
    agent: str
    round: int
    tokens: float | None
    """Of its own model calls."""
    cost_usd: float | None
    delivered_tokens: float
    """That its text put into prompts of others, the decision's included."""
    useful: bool
    """A chain of uptake leads from it to the final answer."""
    paths: int | None
    unnecessary: int | None
    ids_without: float | None


class EdgeShare(Struct, frozen=True):
    """What one agent passed on to another."""

    source: str
    reader: str
    transfers: int
    taken_up: int
    """Transfers along which something was used."""
    delivered_tokens: float
    repeated_tokens: float
    """Of these, what the reader had seen or said before."""
    delivered_usd: float | None
    paths: int | None
    unnecessary: int | None
    ids_without: float | None


class AgentShare(Struct, frozen=True):
    """What one agent cost, carried and contributed."""

    agent: str
    steps: int
    tokens: float | None
    cost_usd: float | None
    delivered_tokens: float
    paths: int | None
    unnecessary: int | None
    ids_without: float | None
    shapley: float | None
    shapley_low: float | None
    """Bounds where the value is sampled."""
    shapley_high: float | None
    leave_one_out: float | None


class Attribution(Struct, frozen=True):
    """The shares of one run."""

    agents: tuple[AgentShare, ...]
    edges: tuple[EdgeShare, ...]
    steps: tuple[StepShare, ...]
    paths: int | None
    unnecessary: int | None
    judged_by: str
    """``correct steps`` or ``useful steps``."""
    ids: float | None
    value_function: str
    """What Shapley values are shares of."""
    reasons: Mapping[str, str]
    """Why ``paths``, ``ids`` or ``shapley`` is None."""


def attribute(context: Context) -> Attribution:
    """What each agent, edge and step of a trace cost, carried and contributed."""
    reasons: dict[str, str] = {}
    loads = _loads(context, reasons)
    worth, function = worth_of_agents(context, reasons)
    diversity = _diversity(context, reasons)
    steps = _steps(context, loads, diversity)
    agents = []
    for name in context.graph.agent_names:
        own = [share for share in steps if share.agent == name]
        delivered = sum(share.delivered_tokens for share in own)
        tokens, usd = _used(costs(context), name)
        paths, unnecessary = loads.agents.get(name, (None, None))
        value = worth.get(name, Worth())
        agents.append(
            AgentShare(
                name, len(own), tokens, usd, delivered, paths, unnecessary,
                diversity.agents.get(name),
                *value,
            )
        )  # fmt: skip
    return Attribution(
        tuple(agents),
        _edges(context, loads, diversity),
        steps,
        loads.paths,
        loads.unnecessary,
        loads.judged_by,
        diversity.whole,
        function,
        reasons,
    )


def _steps(context: Context, loads: _Loads, diversity: _Diversity) -> tuple[StepShare, ...]:
    spent, useful = costs(context), uptake(context).useful
    delivered = np.bincount(spent.pairs[:, 0], weights=spent.delivered, minlength=len(spent.names))
    put = dict(zip(spent.names, delivered.tolist(), strict=True))
    calls = spent.calls
    own = dict(zip(calls.names, zip(calls.tokens.tolist(), calls.usd.tolist(), strict=True), strict=True))
    shares = []
    for step in context.graph.steps:
        tokens, usd = own.get(step.id, (None, None))
        paths, unnecessary = loads.steps.get(step.id, (None, None))
        price = None if usd is None or np.isnan(usd) else usd
        shares.append(
            StepShare(
                step.id, step.agent, step.round or 0, tokens, price, put[step.id], useful[step.id],
                paths, unnecessary, diversity.steps.get(step.id),
            )
        )  # fmt: skip
    return tuple(shares)


def _used(spent: Costs, agent: str) -> tuple[float | None, float | None]:
    """Tokens and dollars of all model calls of an agent, thoughts that are no turn included."""
    own = spent.calls.speakers == spent.agents.index(agent)
    if not own.any():
        return None, None
    usd = float(spent.calls.usd[own].sum())
    return float(spent.calls.tokens[own].sum()), None if np.isnan(usd) else usd


def _edges(context: Context, loads: _Loads, diversity: _Diversity) -> tuple[EdgeShare, ...]:
    """By agents of source and reader, in order of the first transfer; transfers to a decision are no edge."""
    spent, found = costs(context), uptake(context)
    sums: dict[tuple[str, str], list[float]] = {}
    again = spent.delivered * repeated_shares(context)
    amounts = np.column_stack([found.taken, spent.delivered, again, spent.delivered_usd])
    for (source, target), row in zip(spent.pairs.tolist(), amounts.tolist(), strict=True):
        if min(spent.speakers[source], spent.speakers[target]) < 0:
            continue
        ends = spent.agents[spent.speakers[source]], spent.agents[spent.speakers[target]]
        total = sums.setdefault(ends, [0, 0, 0.0, 0.0, 0.0])
        for place, amount in enumerate((1, *row)):
            total[place] += amount
    shares = []
    for ends, (transfers, taken, tokens, repeated, usd) in sums.items():
        paths, unnecessary = loads.edges.get(ends, (None, None))
        price = None if np.isnan(usd) else usd
        shares.append(
            EdgeShare(
                *ends, int(transfers), int(taken), tokens, repeated, price, paths, unnecessary,
                diversity.edges.get(ends),
            )
        )  # fmt: skip
    return tuple(shares)


Load = tuple[int, int]
"""Paths, and unnecessary ones."""


class _Loads(Struct):
    """Path loads of one trace; empty where paths cannot be counted exactly."""

    judged_by: str
    paths: int | None = None
    unnecessary: int | None = None
    steps: Mapping[str, Load] = {}
    edges: Mapping[tuple[str, str], Load] = {}
    agents: Mapping[str, Load] = {}


def _loads(context: Context, reasons: dict[str, str]) -> _Loads:
    correctness = step_correctness(context)
    judged_by = "useful steps" if correctness.reason else "correct steps"
    flags = uptake(context).useful if correctness.reason else correctness.correct
    view = context.graph.unrolled
    edges = view.edge_array
    if context.graph.why_no_edges:
        reasons["paths"] = context.graph.why_no_edges
        return _Loads(judged_by)
    necessary = [flags[step.id] for step in view.steps]
    question = PathQuestion.read((len(necessary), edges), necessary, UPR.parameters["threshold"], "subpath")
    size = f"{len(necessary):,} steps and {len(edges):,} transfers"
    if not question.is_exact_quick:
        reasons["paths"] = f"{size} are too many to count paths exactly"
        return _Loads(judged_by)
    loads = _Loads(
        judged_by,
        question.paths,
        question.paths - count(question),
        agents=_agent_loads(question, [step.agent for step in view.steps]),
    )
    if not question.is_load_quick:
        reasons["load"] = f"{size} are too many to count the paths through each exactly"
        return loads
    loads.steps = dict(zip(view.names, node_load(question), strict=True))
    loads.edges = _edge_loads(view, edges, load(question))
    return loads


def _edge_loads(view: View, edges: Edges, loads: list[Load]) -> dict[tuple[str, str], Load]:
    sums: dict[tuple[str, str], Load] = {}
    for (source, target), (paths, unnecessary) in zip(edges.tolist(), loads, strict=True):
        ends = view.steps[source].agent, view.steps[target].agent
        before = sums.get(ends, (0, 0))
        sums[ends] = before[0] + paths, before[1] + unnecessary
    return sums


def _agent_loads(question: PathQuestion, agents: list[str]) -> dict[str, Load]:
    """Paths through any step of an agent: all less those that avoid its steps."""
    loads = {}
    owners = np.array(agents)
    everything = question.paths, question.paths - count(question)
    for name in dict.fromkeys(agents):
        others = question.edges[(owners[question.edges] != name).all(axis=1)]
        rest = PathQuestion.read((question.n, others), question.correct, question.threshold, question.kind)
        necessary = count(rest) if len(others) else 0
        loads[name] = everything[0] - rest.paths, everything[1] - (rest.paths - necessary)
    return loads


class _Diversity(Struct):
    """IDS of one trace, and without each part."""

    whole: float | None = None
    agents: dict[str, float] = {}
    edges: dict[tuple[str, str], float] = {}
    steps: dict[str, float] = {}


def _diversity(context: Context, reasons: dict[str, str]) -> _Diversity:
    whole = IDS.compute(replace(context, profile="strict"), **IDS.values("strict"))
    if whole.value is None:
        reasons["ids"] = whole.reason
        return _Diversity()
    view = context.graph.unrolled
    owners = np.array([step.agent for step in view.steps])
    ends = list(dict.fromkeys((owners[i], owners[j]) for i, j in view.edges))
    names = context.graph.agent_names
    if len(owners) * (len(names) + len(ends)) > MOST_TEXTS:
        reasons["ids_without"] = f"{len(owners):,} steps are too many to leave each agent out"
        return _Diversity(whole.value)
    everyone = np.ones(len(owners), dtype=bool)
    found = {name: _ids(context, view, owners != name) for name in names}
    cut = {(source, reader): _ids(context, view, everyone, (source, reader)) for source, reader in ends}
    alone = {}
    if len(owners) ** 2 <= MOST_TEXTS:
        alone = {name: _ids(context, view, everyone & (np.arange(len(owners)) != number))
                 for number, name in enumerate(view.names)}  # fmt: skip
    else:
        reasons["ids_without"] = f"{len(owners):,} steps are too many to leave each one out"
    return _Diversity(whole.value, _defined(found), _defined(cut), _defined(alone))


def _defined(found: Mapping[Key, float | None]) -> dict[Key, float]:
    return {key: value for key, value in found.items() if value is not None}


def _ids(
    context: Context, view: View, kept: NDArray[np.bool_], cut: tuple[str, str] | None = None
) -> float | None:
    """IDS of the steps that are kept, without transfers from the first agent of ``cut`` to the second."""
    place = kept.cumsum() - 1
    owners = [step.agent for step in view.steps]
    texts = [step.text for step, stays in zip(view.steps, kept, strict=True) if stays]

    def rest(edges: Edges) -> tuple[int, Edges]:
        stays = kept[edges].all(axis=1)
        if cut is not None:
            stays &= np.array([(owners[i], owners[j]) != cut for i, j in edges.tolist()], dtype=bool)
        return len(texts), place[edges[stays]]

    parameters = IDS.values("strict")
    return information_diversity(
        texts, rest(view.spatial_edges), rest(view.temporal_edges), embed=context.embed, **parameters
    ).value
