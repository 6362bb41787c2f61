"""Traces as DataFrames: a row a run, an agent, an edge, a step, or an event in the life of a claim.

    to_pandas(read("runs/"), level="edges")

Rows of metrics are `Scores.to_pandas`. Unknown is missing (NaN or None), never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from counterpoint.contracts import Context, Embedder
from counterpoint.errors import MissingExtra, UsageError
from counterpoint.graph import CollaborationGraph
from counterpoint.judges import make
from counterpoint.metrics.claim_ledger import ledger
from counterpoint.metrics.claim_metrics import OPTIONS
from counterpoint.metrics.outcome import price_usd
from counterpoint.models.embed import embedder as load_embedder
from counterpoint.registry import suggest
from counterpoint.trace import Step, Trace, seed, task_id, tidy

if TYPE_CHECKING:
    import pandas

__all__ = ["LEVELS", "to_pandas"]


def to_pandas(
    traces: Iterable[Trace],
    level: str = "runs",
    *,
    evidence: str = "broadcast",
    embedder: str | Embedder = "default",
) -> pandas.DataFrame:
    """A DataFrame with a row for each run, agent, edge, step or claim event of ``traces``.

    Parameters
    ----------
    level: ``runs`` (a trace), ``agents`` (an agent of a trace), ``edges`` (a pair of agents of a trace, with
        how often one heard the other), ``steps``, ``claims`` (an event in the life of a claim, as
        ``counterpoint claims`` prints them, by the offline judge).
    evidence: the weakest evidence of a transfer that counts as an edge.
    embedder: name, path or callable, for claims.

    Raises
    ------
    MissingExtra: pandas is not installed. UsageError: no such level, or evidence.
    """
    if level not in LEVELS:
        raise UsageError(f"level {level!r} is none of {', '.join(LEVELS)}{suggest(level, LEVELS)}")
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a DataFrame", "pandas") from None
    rows = partial(_claims, embed=load_embedder(embedder)) if level == "claims" else LEVELS[level]
    graphs = (CollaborationGraph(tidy(trace), evidence=evidence) for trace in traces)
    return pandas.DataFrame.from_records([row for graph in graphs for row in rows(graph)])


def _run(graph: CollaborationGraph) -> dict[str, Any]:
    trace = graph.trace
    return {
        "trace": trace.id,
        "system": trace.system,
        "task": task_id(trace),
        "seed": seed(trace),
    }


def _runs(graph: CollaborationGraph) -> Iterator[dict[str, Any]]:
    trace = graph.trace
    yield _run(graph) | {
        "gold": trace.gold,
        "answer": trace.answer,
        "correct": trace.correct,
        "benchmark": trace.benchmark,
        "source": trace.source,
        "steps": len(graph.steps),
        "agents": len(graph.agent_names),
        "rounds": graph.rounds,
        "depth": graph.depth,
        **_usage(trace.steps),
        "warnings": len(trace.warnings),
    }


def _agents(graph: CollaborationGraph) -> Iterator[dict[str, Any]]:
    edges = graph.agents("union").edges
    for number, name in enumerate(graph.agent_names):
        own = [step for step in graph.steps if step.agent == name]
        yield _run(graph) | {
            "agent": name,
            "role": next((step.role for step in own if step.role), ""),
            "steps": len(own),
            "heard": sum(target == number for _, target in edges),
            "heard_by": sum(source == number for source, _ in edges),
            "idle": name in graph.idle_agents,
            **_usage(own),
        }


def _edges(graph: CollaborationGraph) -> Iterator[dict[str, Any]]:
    counts: dict[tuple[str, str], dict[str, int]] = {}
    view = graph.unrolled
    for scope, pairs in (("within", view.spatial_edges), ("across", view.temporal_edges)):
        for source, target in pairs.tolist():
            ends = (graph.steps[source].agent, graph.steps[target].agent)
            count = counts.setdefault(ends, {"within": 0, "across": 0})
            count[scope] += 1
    for (source_agent, target_agent), count in counts.items():
        yield _run(graph) | {"source_agent": source_agent, "target_agent": target_agent, **count}


def _steps(graph: CollaborationGraph) -> Iterator[dict[str, Any]]:
    for number, step in enumerate(graph.trace.steps):
        usage = msgspec.structs.asdict(step.usage) if step.usage else {}
        yield _run(graph) | {
            "number": number,
            "step": step.id,
            "agent": step.agent,
            "role": step.role,
            "kind": step.kind,
            "round": step.round,
            "text": step.text,
            "answer": step.answer,
            "heard": [transfer.source for transfer in step.heard],
            "calls": [call.tool for call in step.calls],
            "started_at": step.started_at,
            "ended_at": step.ended_at,
            "tokens_in": usage.get("tokens_in"),
            "tokens_out": usage.get("tokens_out"),
            "model": usage.get("model"),
            "error": step.error,
        }


def _claims(graph: CollaborationGraph, embed: Embedder | None = None) -> Iterator[dict[str, Any]]:
    context = Context(graph.trace, graph, embed=embed, judges=partial(make, embed=embed, cache=None))
    for event in ledger(context, OPTIONS):
        yield _run(graph) | msgspec.structs.asdict(event)


def _usage(steps: Iterable[Step]) -> dict[str, Any]:
    """Tokens and dollars over steps; None where none of them says."""
    used = [step.usage for step in steps if step.usage is not None]
    prices = [price for usage in used if isinstance(price := price_usd(usage), float)]
    sums: dict[str, Any] = {}
    for field in ("tokens_in", "tokens_out"):
        known = [amount for usage in used if (amount := getattr(usage, field)) is not None]
        sums[field] = sum(known) if known else None
    sums["cost_usd"] = sum(prices) if prices and len(prices) == len(used) else None
    return sums


LEVELS: dict[str, Callable[[CollaborationGraph], Iterator[dict[str, Any]]]] = {
    "runs": _runs,
    "agents": _agents,
    "edges": _edges,
    "steps": _steps,
    "claims": _claims,
}
"""Level to the function that gives its rows."""
