"""Gate a build on process metrics: what must not happen, whether it did, and when nobody can tell.

Three states: passed, failed, and not evaluable. "Could not evaluate" is never green and never blamed on the
agents: it has an exit code of its own. A failed gate beats one that cannot be evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, structs

from counterpoint.compare import Comparison, Difference, compare
from counterpoint.contracts import Context
from counterpoint.errors import CounterpointError, UsageError
from counterpoint.evaluate import evaluate
from counterpoint.gates import Gate, parse_gates
from counterpoint.graph import CollaborationGraph
from counterpoint.metrics import metric
from counterpoint.metrics.attribution import attribute
from counterpoint.score import Row
from counterpoint.scores import Scores
from counterpoint.stats import interval
from counterpoint.trace import Trace

__all__ = ["CheckResult", "GateFailed", "GateResult", "check", "check_scores", "gate_metrics"]

WORST = 3
"""Traces named beside a failed gate."""
FEWEST = 6
"""Tasks below which no sign-flip test can reach p = .05."""

State = Literal["passed", "failed", "not evaluable"]


class GateFailed(CounterpointError, AssertionError):
    """A gate that did not pass, as an assertion for tests."""


class GateResult(Struct, frozen=True):
    """One gate and what was observed."""

    gate: str
    state: State
    metric: str
    observed: float | None
    """The fold of the metric over defined traces; None where the gate is not evaluable."""
    threshold: float
    n: int
    """Traces with a value."""
    undefined: int
    """Traces without one."""
    ci_low: float | None = None
    ci_high: float | None = None
    worst: list[tuple[str, float]] = []
    """The traces farthest on the failing side, with their values."""
    worst_steps: list[str] = []
    """Of the worst trace: the steps on most unnecessary paths; where those are not known, of most tokens."""
    reason: str = ""
    """Why the gate is not evaluable."""

    def __str__(self) -> str:
        """One line: state, gate, observed value, interval, counts."""
        if self.observed is None:
            return f"{self.state}: {self.gate}: {self.reason} ({self.undefined} undefined)"
        bounds = "" if self.ci_low is None else f", 95 % interval {self.ci_low:.4g} to {self.ci_high:.4g}"
        worst = ""
        if self.state == "failed" and self.worst:
            worst = "; worst: " + ", ".join(f"{name} ({value:.4g})" for name, value in self.worst)
        if self.worst_steps:
            worst += f"; worst steps of {self.worst[0][0]}: {', '.join(self.worst_steps)}"
        left = f", {self.undefined} undefined" if self.undefined else ""
        return f"{self.state}: {self.gate}: {self.observed:.4g} over {self.n} traces{bounds}{left}{worst}"


class CheckResult(Struct, frozen=True):
    """All gates of one check."""

    gates: list[GateResult]
    errors: list[str] = []
    """Records that could not be read: what they would have shown is not known."""
    notes: list[str] = []
    """What was left out of the comparison with a baseline."""

    @property
    def exit_code(self) -> int:
        """0 all passed, 1 one failed, 2 input could not be read, 3 a gate could not be evaluated."""
        if self.errors:
            return 2
        states = {gate.state for gate in self.gates} or {"not evaluable"}
        return 1 if "failed" in states else 3 if "not evaluable" in states else 0

    @property
    def passed(self) -> bool:
        """Whether every gate was evaluated and passed."""
        return self.exit_code == 0

    def __str__(self) -> str:
        """A line a gate."""
        nothing = "not evaluable: no condition, and no metric of the baseline has a direction"
        told = [*map(str, self.gates), *(f"error: {error}" for error in self.errors)]
        return "\n".join(told or [nothing]) + "".join(f"\nnote: {note}" for note in self.notes)

    def require(self) -> None:
        """Raise GateFailed unless every gate passed."""
        if not self.passed:
            raise GateFailed(str(self))


def check(
    traces: Iterable[Trace] | Scores | str | Path,
    require: str | None = None,
    *,
    fail_on: str | None = None,
    baseline: Scores | None = None,
    tolerance: float = 0.0,
    **evaluation: Any,
) -> CheckResult:
    """Check ``traces`` (or their scores) against gates.

    Parameters
    ----------
    traces: an iterable of Trace, the Scores of one, or a path to read.
    require: conditions that must hold: ``"upr<=0.4, ids>=0.3"``.
    fail_on: conditions under which the check fails: ``"upr>0.4, max(loops)>0"``.
    baseline: earlier scores; the check fails where a metric got worse than them by more than ``tolerance``,
        by a paired test and not by the raw difference.
    evaluation: options of `evaluate`.

    Raises
    ------
    UsageError: a malformed condition (a caret shows the place) or an unknown metric.
    """
    if require is None and fail_on is None and baseline is None:
        raise UsageError("check needs conditions: require='upr<=0.4', fail_on='upr>0.4', or a baseline")
    gates = parse_gates(require, require=True) if require is not None else []
    gates += parse_gates(fail_on) if fail_on is not None else []
    names = gate_metrics(gates) + (baseline.metrics if baseline else [])
    if isinstance(traces, str | Path):
        from counterpoint.adapters import read

        traces = read(traces, on_error=lambda error: None)
    kept: dict[str, Trace] = {}
    if isinstance(traces, Scores):
        scores = traces
    else:
        run = evaluation.pop("run", str(getattr(traces, "run", "")))
        scores = evaluate(_keep(traces, kept), list(dict.fromkeys(names)), run=run, **evaluation)
    result = check_scores(scores, gates, baseline=baseline, tolerance=tolerance)
    evidence = evaluation.get("evidence", "broadcast")
    named = [_with_steps(gate, kept, evidence) for gate in result.gates]
    result = structs.replace(result, gates=named)
    errors = [str(error) for error in getattr(traces, "errors", ())]
    return structs.replace(result, errors=errors) if errors else result


def _keep(traces: Iterable[Trace], kept: dict[str, Trace]) -> Iterator[Trace]:
    for trace in traces:
        kept[trace.id] = trace
        yield trace


def _with_steps(gate: GateResult, kept: dict[str, Trace], evidence: str) -> GateResult:
    """A failed gate with the worst steps of its worst trace."""
    trace = kept.get(gate.worst[0][0]) if gate.worst else None
    if gate.state != "failed" or trace is None:
        return gate
    graph = CollaborationGraph(trace, evidence=evidence)
    shares = attribute(Context(graph.trace, graph)).steps
    if any(share.unnecessary for share in shares):
        ranked = sorted(shares, key=lambda share: -(share.unnecessary or 0))
        told = [f"{share.step} by {share.agent} ({share.unnecessary} unnecessary paths)" for share in ranked]
    else:
        ranked = sorted(shares, key=lambda share: -(share.tokens or 0))
        told = [
            f"{share.step} by {share.agent} ({share.tokens:g} tokens)" for share in ranked if share.tokens
        ]
    return structs.replace(gate, worst_steps=told[:WORST])


def gate_metrics(gates: Sequence[Gate]) -> list[str]:
    """The metrics that the gates speak of, each once; UsageError suggests a name for an unknown one."""
    return list(dict.fromkeys(str(metric(gate.metric)) for gate in gates))


def check_scores(
    scores: Scores, gates: Sequence[Gate], *, baseline: Scores | None = None, tolerance: float = 0.0
) -> CheckResult:
    """Check scores that are already there."""
    results = [
        _judge(gate, [row for row in scores.rows if row.metric == str(metric(gate.metric))]) for gate in gates
    ]
    if baseline is None:
        return CheckResult(results)
    comparison = compare(baseline, scores, names=("baseline", "now"))
    results += _regressions(comparison, tolerance)
    return CheckResult(results, notes=list(_left_out(comparison)))


def _judge(gate: Gate, rows: list[Row]) -> GateResult:
    defined = [(row.trace, row.value) for row in rows if row.value is not None]
    values = [value for _, value in defined]
    undefined = len(rows) - len(defined)
    bounds = interval(values, proportion=gate.metric == "accuracy") if values else None
    observed: float | None = None
    reason = ""
    if not values:
        reason = next((row.reason for row in rows), "there are no traces, or their scores lack the metric")
    elif gate.fold in ("ci_low", "ci_high"):
        assert bounds is not None
        observed = bounds.low if gate.fold == "ci_low" else bounds.high
        reason = bounds.reason
    else:
        observed = {"mean": sum(values) / len(values), "min": min(values), "max": max(values)}[gate.fold]
    state: State = "not evaluable" if observed is None else "failed" if gate.fails(observed) else "passed"
    upward = gate.comparison in (">", ">=")
    return GateResult(
        gate=gate.text,
        state=state,
        metric=gate.metric,
        observed=observed,
        threshold=gate.threshold,
        n=len(values),
        undefined=undefined,
        ci_low=bounds.low if bounds else None,
        ci_high=bounds.high if bounds else None,
        worst=sorted(defined, key=lambda item: (-item[1] if upward else item[1], item[0]))[:WORST],
        reason=reason,
    )


def _left_out(comparison: Comparison) -> Iterator[str]:
    """What the comparison says nothing about: tasks of one side only, metrics that neither side has."""
    for pair in comparison.pairs:
        for tasks, where in ((pair.only_a, "the baseline"), (pair.only_b, "this run")):
            if tasks:
                yield f"{len(tasks)} tasks of {where} only were not compared"
    nowhere = [row.metric for row in comparison.rows if row.a is None and row.b is None]
    if nowhere:
        yield f"undefined on both sides: {', '.join(dict.fromkeys(nowhere))}"


def _regressions(comparison: Comparison, tolerance: float) -> Iterator[GateResult]:
    """One gate a metric and pair: failed where it got worse by more than ``tolerance``, beyond chance."""
    several = len(comparison.pairs) > 1
    for row in comparison.rows:
        better = metric(row.metric).better
        if not better or (row.a is None and row.b is None):
            continue
        pair = f" ({row.label_b})" if several else ""
        left = row.undefined
        yield GateResult(
            gate=f"{row.metric} no worse than the baseline by {tolerance:g}{pair}",
            state=_regressed(row, better, tolerance),
            metric=row.metric,
            observed=row.difference,
            threshold=tolerance if better == "lower" else -tolerance,
            n=row.n,
            undefined=left,
            ci_low=row.ci_low,
            ci_high=row.ci_high,
            reason=row.reason or f"{row.n} tasks are too few for a paired test: {FEWEST} at least",
        )


def _regressed(row: Difference, better: str, tolerance: float) -> State:
    if row.difference is None or row.n < FEWEST:
        return "not evaluable"
    harm = -row.difference if better == "higher" else row.difference
    bound = row.ci_high if better == "higher" else row.ci_low
    certain = harm if bound is None else -bound if better == "higher" else bound
    return "failed" if row.verdict.startswith("worse") and certain > tolerance else "passed"
