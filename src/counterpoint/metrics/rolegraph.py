"""The role graph: what a run did, as actions with canonical roles and the transfers between them.

Conventions
-----------
* A node is one atomic action: a turn of an agent (``agent_message``), a tool call or a turn of a code-running
  tool (``tool_call``), or the team's answer (``decision``). Task and control steps are no nodes.
* ``edges`` are (source, target) index pairs; the graph is acyclic. Duplicates are merged.
* Nodes from a trace stand in time order. A tool call stands before the turn that made it, with an edge from
  it to that turn if it has given a result: the turn's text is what came out when all of it was read.
* An agent's own memory is no edge.

Differences from the paper
--------------------------
The paper's graph has tool calls as nodes and does not say how their edges run; the above is ours.

Source: ForestBench, G = (V, E, φ) with φ: V -> roles.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from counterpoint.contracts import Context
from counterpoint.errors import UsageError
from counterpoint.graph import Edges, index_edges, levels, topological_order
from counterpoint.metrics.roles import NodeKind, RoleTable, role_table
from counterpoint.trace import EVIDENCE, Call, Step, Trace, task_id, tidy

__all__ = ["Action", "Origin", "RoleGraph", "actions", "content_hash", "role_graph"]

EdgeList: TypeAlias = Sequence[tuple[int, int]] | Edges

PROTOCOL_ROLES = frozenset({"user", "assistant", "system", "function", "tool", "developer"})
"""Roles of a chat protocol: they say who may speak, not what an agent is for."""


class Origin(Struct, frozen=True):
    """Where a role graph comes from."""

    task: str = ""
    """Id of the task (query): graphs of one task are compared."""
    dataset: str = ""
    traces: tuple[str, ...] = ()
    """Content hashes of the runs that have this graph."""


class RoleGraph:
    """Actions with roles, and the transfers between them.

    Parameters
    ----------
    roles: one a node.
    edges: (i, j) pairs, i's output reached j.
    tokens: tokens of the run, or one number a node; None where unknown.
    correct: was the run verified as right: a bool, or partial credit in [0, 1].
    generator: the framework that made the run; references of a candidate's own generator can be left out.
    conditioning: what the run was shown beside the task (``gold``), empty for nothing.
    agents: one label a node: whose action it is.
    names: one a node: the name that its role was read from.

    Raises
    ------
    GraphError: an edge out of range, a self-loop, a cycle.
    UsageError: labels that are not one a node, or correctness outside [0, 1].
    """

    def __init__(
        self,
        roles: Sequence[str],
        edges: EdgeList,
        *,
        tokens: float | Sequence[float | None] | None = None,
        correct: bool | float = True,
        generator: str = "",
        conditioning: str = "",
        agents: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        origin: Origin | None = None,
    ) -> None:
        if isinstance(roles, str):
            raise UsageError(f"roles are a list, one a node, not the text {roles[:40]!r}")
        self.roles = tuple(roles)
        n, self.edges = index_edges((len(self.roles), edges))
        self.forward = bool((self.edges[:, 0] < self.edges[:, 1]).all())
        """Every edge goes from a lower to a higher index, as in a graph made from a trace."""
        if not self.forward:
            topological_order(n, self.edges)
        for label, values in (("agents", agents), ("names", names)):
            if values is not None and len(values) != n:
                raise UsageError(f"{label}: {len(values)} for {n} nodes, one a node is needed")
        if not 0 <= float(correct) <= 1:
            raise UsageError(f"correct is a bool or a number in [0, 1], found {correct!r}")
        self.node_tokens, self.tokens = _tokens(tokens, n)
        self.correct = float(correct)
        self.generator = generator
        self.conditioning = conditioning
        self.agents = None if agents is None else tuple(agents)
        self.names = None if names is None else tuple(names)
        self.origin = origin or Origin()

    @classmethod
    def from_trace(
        cls, trace: Trace, aliases: str | Path | RoleTable = "default", *, evidence: str = "broadcast"
    ) -> RoleGraph:
        """The role graph of a trace, with transfers at or above ``evidence``.

        Tokens are known iff every turn of an agent records both counts, or the run its totals. A trace that
        does not say whether it was correct is not verified.

        >>> from counterpoint.trace import Step, Transfer
        >>> steps = (Step("1", "Planner", "split"), Step("2", "Coder", "code", heard=(Transfer("1"),)))
        >>> graph = RoleGraph.from_trace(Trace("t", steps))
        >>> graph.roles, graph.edges.tolist()
        (('planner', 'coder'), [[0, 1]])
        """
        trace = tidy(trace)
        table = role_table(aliases)
        nodes = actions(trace)
        found = [table.resolve(*_names(node), kind=node.kind) for node in nodes]
        return cls(
            [role for role, _ in found],
            _edges(nodes, evidence),
            tokens=_spent(trace, nodes),
            correct=bool(trace.correct),
            generator=trace.system,
            conditioning=str(trace.labels.get("conditioning") or ""),
            agents=[node.agent for node in nodes],
            names=[name for _, name in found],
            origin=Origin(task_id(trace), trace.benchmark or "", (content_hash(trace),)),
        )

    def __repr__(self) -> str:
        return f"RoleGraph({len(self.roles)} nodes, {len(self.edges)} edges, generator={self.generator!r})"

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.roles)

    @property
    def size(self) -> int:
        """Nodes plus edges."""
        return len(self.roles) + len(self.edges)

    @cached_property
    def role_counts(self) -> Counter[str]:
        """How many nodes have each role."""
        return Counter(self.roles)

    @cached_property
    def edge_counts(self) -> Counter[tuple[str, str]]:
        """How many edges run between each pair of roles."""
        role = self.roles.__getitem__
        sources, targets = self.edges.T.tolist()
        return Counter(zip(map(role, sources), map(role, targets), strict=True))

    @cached_property
    def levels(self) -> list[int]:
        """Of each node: edges on the longest path that ends in it."""
        if not self.forward:
            return [int(level) for level in levels(self.n, self.edges)]
        depth = [0] * self.n
        for source, target in self.edges.tolist():
            if depth[source] >= depth[target]:
                depth[target] = depth[source] + 1
        return depth

    @cached_property
    def depth(self) -> int:
        """Nodes on the longest path."""
        return max(self.levels, default=-1) + 1

    @cached_property
    def width(self) -> int:
        """Nodes on the fullest level."""
        return max(Counter(self.levels).values(), default=0)

    @cached_property
    def structure(self) -> str:
        """A hash that two graphs share if they differ in nothing but names and the order of their nodes.

        Each node is labeled by its role and the labels of all that leads to it, then of all that follows it.
        """
        before: list[str] = [""] * self.n
        after: list[str] = [""] * self.n
        sources: list[list[int]] = [[] for _ in self.roles]
        targets: list[list[int]] = [[] for _ in self.roles]
        for source, target in self.edges.tolist():
            sources[target].append(source)
            targets[source].append(target)
        order = topological_order(self.n, self.edges)
        for node in order:
            before[node] = _short(self.roles[node], sorted(before[source] for source in sources[node]))
        for node in reversed(order):
            after[node] = _short(self.roles[node], sorted(after[target] for target in targets[node]))
        edges = sorted(_short(before[i], after[i], before[j], after[j]) for i, j in self.edges.tolist())
        return _short(sorted(map(_short, before, after)), edges)

    def replace(
        self,
        roles: Sequence[str],
        edges: EdgeList,
        *,
        agents: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
    ) -> RoleGraph:
        """A graph with other nodes and edges and the same origin; tokens are not carried over."""
        return RoleGraph(
            roles,
            edges,
            correct=self.correct,
            generator=self.generator,
            conditioning=self.conditioning,
            agents=agents,
            names=names,
            origin=self.origin,
        )


class Action(Struct, frozen=True):
    """One node of a role graph, with the step (and call) that it stands for."""

    kind: NodeKind
    agent: str
    step: Step
    call: Call | None = None

    @property
    def text(self) -> str:
        """What the action gave to others: the turn's text, or the call's result."""
        if self.call is None:
            return self.step.text
        return self.call.result if self.call.result is not None else self.call.error or ""

    @property
    def content(self) -> str:
        """What the action did: the turn's text, or the call's tool, arguments and result."""
        if self.call is None:
            return self.step.text
        return f"{self.call.tool} {self.call.arguments} {self.text}".strip()


def actions(trace: Trace) -> list[Action]:
    """The nodes of a trace in time order; the calls of a turn stand before it."""
    nodes: list[Action] = []
    for step in trace.steps:
        if step.kind in ("task", "control"):
            continue
        nodes.extend(Action("tool_call", step.agent, step, call) for call in step.calls)
        kind: NodeKind = "agent_message"
        if step.kind != "agent":
            kind = "decision" if step.kind == "decision" else "tool_call"
        nodes.append(Action(kind, step.agent, step))
    return nodes


def role_graph(context: Context, aliases: str | Path | RoleTable = "default") -> RoleGraph:
    """The role graph of a context's trace at its evidence level, made once a trace and role table."""
    table = role_table(aliases)
    return context.once(
        f"role_graph:{table.sha256}",
        lambda: RoleGraph.from_trace(context.trace, table, evidence=context.graph.evidence),
    )


def content_hash(trace: Trace) -> str:
    """A hash of what was said and done, whatever ids, file names and times say: equal for a copied run."""
    number = {step.id: index for index, step in enumerate(trace.steps)}
    content = [
        [
            step.kind,
            step.agent,
            step.text,
            sorted(number.get(transfer.source, -1) for transfer in step.heard),
            [[call.tool, call.arguments, call.result] for call in step.calls],
        ]
        for step in trace.steps
    ]
    label = trace.labels.get("task_id")
    return _short(task_id(trace) if label or trace.task.strip() else "", content)


def _names(node: Action) -> list[str]:
    if node.call is not None:
        return [node.call.tool]
    role = node.step.role
    return [node.agent] if not role or role.casefold() in PROTOCOL_ROLES else [role, node.agent]


def _edges(nodes: Sequence[Action], evidence: str) -> list[tuple[int, int]]:
    if evidence not in EVIDENCE:
        raise UsageError(f"evidence {evidence!r} is none of {', '.join(EVIDENCE)}")
    allowed = set(EVIDENCE[: EVIDENCE.index(evidence) + 1])
    turn = {node.step.id: index for index, node in enumerate(nodes) if node.call is None}
    edges: list[tuple[int, int]] = []
    for index, node in enumerate(nodes):
        target = turn[node.step.id]
        if node.call is not None:
            if node.call.result is not None or node.call.error is not None:
                edges.append((index, target))
            continue
        for transfer in node.step.heard:
            source = turn.get(transfer.source)
            if source is not None and transfer.evidence in allowed and nodes[source].agent != node.agent:
                edges.append((source, target))
    return edges


def _spent(trace: Trace, nodes: Sequence[Action]) -> float | list[float | None] | None:
    """Tokens in and out, a node each: a call's are those of the turn that made it. Else the run's total."""
    usage = [step.usage for step in trace.steps if step.kind == "agent"]
    if usage and all(used and used.tokens_in is not None and used.tokens_out is not None for used in usage):
        used = [None if node.call else node.step.usage for node in nodes]
        return [(amount.tokens_in or 0) + (amount.tokens_out or 0) if amount else 0 for amount in used]
    total = trace.labels.get("run_usage")
    if isinstance(total, Mapping) and not any(usage):
        read, written = total.get("tokens_in"), total.get("tokens_out")
        if isinstance(read, int | float) and isinstance(written, int | float):
            return float(read + written)
    return None


def _tokens(
    tokens: float | Sequence[float | None] | None, n: int
) -> tuple[tuple[float | None, ...] | None, float | None]:
    """Tokens by node and in all; a sum over nodes is known only if every part is."""
    amounts = [tokens] if tokens is None or isinstance(tokens, int | float | np.number) else [*tokens]
    for amount in amounts:
        if amount is not None and not (math.isfinite(amount) and amount >= 0):
            raise UsageError(f"tokens are finite numbers >= 0, or None where unknown; found {amount}")
    if tokens is None or isinstance(tokens, int | float | np.number):
        return None, None if tokens is None else float(tokens)
    nodes = tuple(tokens)
    if len(nodes) != n:
        raise UsageError(f"tokens: {len(nodes)} for {n} nodes; give one a node, or a total")
    known = [amount for amount in nodes if amount is not None]
    return nodes, float(sum(known)) if known and len(known) == n else None


def _short(*content: str | Iterable[object]) -> str:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
