"""What was detected in the input, which metrics it can carry, and for each that it cannot: what to record.

What counts
-----------
* A need (gold, usage, times, ...) is met by a trace that holds it at least once; a metric is carried by a
  trace that meets all of its needs.
* Advice is by framework (the trace's ``system``), since the switch to flip is another in each; where we have
  none for it, by format, of which the span files are one; see ADVICE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from counterpoint.adapters import Reading
from counterpoint.contracts import Context, Metric
from counterpoint.graph import CollaborationGraph
from counterpoint.metrics import DEFAULT, metrics_of
from counterpoint.metrics.correctness import step_correctness
from counterpoint.metrics.roles import role_table
from counterpoint.trace import EVIDENCE, Step, Trace, tidy

__all__ = ["Carried", "Examination", "FormatFacts", "examine"]

ADVICE: dict[str, dict[str, str]] = {
    "texts": {
        "": "record what each agent said as the step's text",
        "openai-agents": "the Responses API exports none: use the chat completions model, or OpenInference "
        "instrumentation, or export the run items too",
        "google-adk": "set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
        "pydantic-ai": "instrument with InstrumentationSettings(include_content=True)",
        "ms-agent-framework": "switch on enable_sensitive_data (ENABLE_SENSITIVE_DATA=true)",
        "langfuse": "leave capture_input and capture_output of @observe on, and "
        "LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED unset or true",
        "langsmith": "unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS",
        "spans": "switch on content capture: with OpenInference unset OPENINFERENCE_HIDE_INPUTS and "
        "OPENINFERENCE_HIDE_OUTPUTS; else set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true "
        "(SPAN_ONLY in newer ones)",
    },
    "transfers": {
        "": "record `heard` with each step, or each model call's prompt, so that texts are found in it",
        "spans": "capture the prompts of the model calls: instrument the model provider beside the framework",
        "openai-agents": "capture prompts: with the Responses API only handoffs and nesting are known",
    },
    "gold": {
        "": "give --gold FILE with trace or task, and gold; or record `gold` in the trace",
        "dylan": "keep DyLAN's .txt beside the file of the same name: it says which answers were right",
        "puppeteer": "keep path0.log beside path_0.jsonl, and so on: it has the question and its answer",
    },
    "usage": {
        "": "record tokens_in, tokens_out and the model's name with each model call",
        "spans": "instrument the model provider (its SDK) too: the framework's spans hold no token counts",
        "autogen": "have the endpoint report usage: stream_options include_usage",
        "langgraph": "pass stream_usage=True to the chat model, so that messages hold usage_metadata",
    },
    "times": {"": "record started_at and ended_at with each step; message lists hold no times, spans do"},
    "calls": {"": "record each tool call with its name and arguments"},
    "embedder": {"": "install the default embedder, or set COUNTERPOINT_EMBEDDER to a model folder"},
    "judge": {"": "give a judge in the metric's parameters"},
    "forest": {"": "build one from runs that worked: counterpoint forest build RUNS -o forest.jsonl"},
}
"""Need to framework or format to what to switch on there; the empty one holds where no other does."""

SPANS = ("otlp", "otel_sdk", "phoenix")
"""Formats that hold spans of any framework: one to ADVICE, ``spans``."""

_ALONE = "fewer than two agents speak"
_TEAM = "the metric needs a team; if there is one, read the export that holds all of its agents"


class Carried(Struct, frozen=True):
    """One metric: on how many traces it can be computed, and what the others lack."""

    metric: str
    traces: int
    of: int
    missing: Mapping[str, int] = {}
    """Need to the number of traces that lack it."""
    advice: list[str] = []


class FormatFacts(Struct, frozen=True):
    """What the traces of one format hold."""

    format: str
    traces: int
    steps: Mapping[str, int]
    """By kind."""
    agents: Mapping[str, int]
    """Steps by agent."""
    transfers: Mapping[str, int]
    """By evidence, strongest first; between different agents."""
    without_text: int
    """Agent steps that say nothing."""
    without_tokens: int
    """Agent steps without token counts."""
    without_times: int
    unfinished: int
    """Agent steps that started and never ended."""
    cut_off: int
    """Traces with a span that never ended, or without their root span: killed runs, partial exports."""
    repeated: int
    """Agent steps whose text an earlier step of the trace has word for word."""
    spans: int
    orphans: int
    """Spans whose parent is not in the file."""
    totals_left_out: int
    """Spans whose token counts are totals of the model calls in them, and would count these twice."""
    unmapped_roles: Mapping[str, int]
    """Agents that the role tables do not know (they count as ``other``), with their steps."""
    cycles: list[str]
    """The shortest cycles of agents."""
    warnings: Mapping[str, int]


class Examination(Struct, frozen=True):
    """All that `doctor` found."""

    formats: list[FormatFacts]
    metrics: list[Carried]
    detected: Mapping[str, str]
    """File to format."""
    errors: list[str]
    notes: list[str]


def examine(
    reading: Reading,
    metrics: Iterable[str] | None = None,
    *,
    evidence: str = "broadcast",
    roles: str = "default",
) -> Examination:
    """Read everything and say what is there, what is missing, and what to switch on.

    Parameters
    ----------
    reading: what `read` gives.
    metrics: those to ask about; None: the default set.
    evidence: the weakest evidence of a transfer that counts.
    roles: a table of the user's own that maps names to roles, looked up before ours.
    """
    facts: dict[str, _Facts] = {}
    names = DEFAULT if metrics is None else metrics
    asked = [chosen for name in names for chosen in metrics_of(name)]
    carried = {str(chosen): _Tally(chosen) for chosen in asked}
    for trace in reading:
        trace = tidy(trace)
        name = str(trace.labels.get("format") or trace.source or "native")
        facts.setdefault(name, _Facts(roles)).add(trace)
        lacking = _lacking(trace, evidence)
        for tally in carried.values():
            tally.add(lacking, trace.system, name)
    return Examination(
        formats=[found.told(name) for name, found in facts.items()],
        metrics=[tally.told() for tally in carried.values()],
        detected=dict(reading.detected),
        errors=[str(error) for error in reading.errors],
        notes=list(reading.notes),
    )


def _has_run_usage(trace: Trace) -> bool:
    """Are the prompt's tokens of the whole run known? Some formats know only all tokens together."""
    total = trace.labels.get("run_usage")
    return isinstance(total, Mapping) and total.get("tokens_in") is not None


def _lacking(trace: Trace, evidence: str) -> dict[str, str]:
    """Needs that the trace does not meet, with the reason where there is more to say than the need."""
    graph = CollaborationGraph(trace, evidence=evidence)
    steps = graph.steps
    tests: dict[str, Callable[[], str | bool]] = {
        "texts": lambda: any(step.text.strip() for step in steps),
        "transfers": lambda: graph.why_no_edges or True,
        "gold": lambda: trace.correct is not None or bool(trace.gold),
        "usage": lambda: (
            _has_run_usage(trace)
            or any(step.usage is not None and step.usage.tokens_in is not None for step in trace.steps)
        ),
        "times": lambda: any(step.started_at is not None for step in trace.steps),
        "calls": lambda: any(step.calls for step in trace.steps),
        "answers": lambda: step_correctness(Context(trace, graph)).reason or True,
    }
    lacking = {}
    for need, holds in tests.items():
        found = holds()
        if found is not True:
            lacking[need] = found if isinstance(found, str) else ""
    return lacking


def _advice(need: str, system: str, format: str) -> str:
    told = ADVICE.get(need, {})
    family = "spans" if format in SPANS else ""
    return next((told[key] for key in (system or format, format, family or format, "") if key in told), "")


class _Tally:
    """One metric over all traces."""

    def __init__(self, chosen: Metric) -> None:
        self.metric = chosen
        self.carried = self.of = 0
        self.missing: Counter[str] = Counter()
        self.advice: dict[str, None] = {}

    def add(self, lacking: Mapping[str, str], system: str, format: str) -> None:
        self.of += 1
        unmet = [need for need in self.metric.needs if need in lacking]
        self.carried += not unmet
        self.missing.update(unmet)
        for need in unmet:
            reason = lacking[need] if need in ("answers", "transfers") else ""
            told = _TEAM if reason == _ALONE else _advice(need, system, format)
            self.advice.setdefault(f"{need}: {reason + '; ' if reason else ''}{told}".rstrip("; "))

    def told(self) -> Carried:
        return Carried(str(self.metric), self.carried, self.of, dict(self.missing), list(self.advice))


class _Facts:
    """What the traces of one format hold, counted."""

    def __init__(self, roles: str) -> None:
        self.traces = self.cut_off = 0
        self.counts: Counter[str] = Counter()
        self.steps: Counter[str] = Counter()
        self.agents: Counter[str] = Counter()
        self.transfers: Counter[str] = Counter()
        self.lacks: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self.unmapped: Counter[str] = Counter()
        self.roles = role_table(roles)
        self.cycles: dict[str, None] = {}

    def add(self, trace: Trace) -> None:
        self.traces += 1
        labels = trace.labels
        self.counts.update({key: _int(labels.get(key)) for key in ("spans", "orphans", "totals_left_out")})
        self.cut_off += bool(_int(labels.get("running")) or labels.get("rootless") is True)
        self.warnings.update(trace.warnings)
        known = {step.id: step for step in trace.steps}
        seen: set[str] = set()
        for step in trace.steps:
            self.steps[step.kind] += 1
            self.transfers.update(
                transfer.evidence for transfer in step.heard if known[transfer.source].agent != step.agent
            )
            if step.kind == "agent":
                self._agent_step(step, seen)
        for cycle in CollaborationGraph(trace).cycles[:3]:
            self.cycles.setdefault(" -> ".join([*cycle, cycle[0]]))

    def _agent_step(self, step: Step, seen: set[str]) -> None:
        self.agents[step.agent] += 1
        text = step.text.strip()
        self.lacks["text"] += not text
        self.lacks["tokens"] += step.usage is None or step.usage.tokens_in is None
        self.lacks["times"] += step.started_at is None
        self.lacks["end"] += step.started_at is not None and step.ended_at is None
        self.lacks["repeated"] += bool(text) and text in seen
        if self.roles.role(step.role, step.agent) == "other":
            self.unmapped[step.agent] += 1
        seen.add(text)

    def told(self, format: str) -> FormatFacts:
        return FormatFacts(
            format=format,
            traces=self.traces,
            steps=dict(self.steps.most_common()),
            agents=dict(self.agents.most_common()),
            transfers={level: self.transfers[level] for level in EVIDENCE if self.transfers[level]},
            without_text=self.lacks["text"],
            without_tokens=self.lacks["tokens"],
            without_times=self.lacks["times"],
            unfinished=self.lacks["end"],
            repeated=self.lacks["repeated"],
            cut_off=self.cut_off,
            spans=self.counts["spans"],
            orphans=self.counts["orphans"],
            totals_left_out=self.counts["totals_left_out"],
            unmapped_roles=dict(self.unmapped.most_common()),
            cycles=list(self.cycles)[:5],
            warnings=dict(self.warnings.most_common()),
        )


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
