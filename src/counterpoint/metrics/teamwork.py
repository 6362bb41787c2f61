"""Coordination of a trace: the measures of `coordination`, fed from what agents said, read and used.

Conventions
-----------
Ranges and parts are those of `coordination`. Nodes are turns of agents; a transfer counts at or above the
evidence level asked for.

What counts
-----------
* Overhead and error amplification need a single-agent baseline: ``turns_single`` and ``error_single``, as the
  metric's parameter, or with each trace as a label of that name. A run that is wrong has an error of 1.
* Effective channels: one vector an agent, of its last text (``outputs=last``), or the mean of all of its
  texts (``outputs=mean``).
* Communication tax: tokens of other agents' texts that a step was given / all tokens in and out. A text has
  the completion tokens recorded for it without hidden reasoning; where they are unknown, or are shared with
  tool calls, a fourth of its characters. A step is given no more than its prompt holds. ``tokens=estimated``
  takes all amounts from the texts, for traces without token counts.
* Participation: how much an agent wrote (``of=text``), its completion tokens as recorded (``of=tokens``), or
  its turns (``of=turns``).
* Message density: a text that two agents read is two messages.

Source: see `coordination`.
"""

from __future__ import annotations

import numpy as np

from counterpoint.contracts import Context, Metric
from counterpoint.errors import UsageError
from counterpoint.metrics import coordination
from counterpoint.metrics.correctness import NO_GOLD, run_correct, step_correctness
from counterpoint.metrics.near import said, said_texts
from counterpoint.metrics.repetition import CHARACTERS_A_TOKEN
from counterpoint.registry import suggest
from counterpoint.score import Score
from counterpoint.trace import EVIDENCE, Step

__all__ = [
    "COMMUNICATION_TAX",
    "EFFECTIVE_CHANNELS",
    "ERROR_AMPLIFICATION",
    "MESSAGE_DENSITY",
    "OVERHEAD",
    "PARTICIPATION_GINI",
]

NO_STEP = "the trace has no agent step"


def _choice(name: str, value: str, among: tuple[str, ...]) -> None:
    if value not in among:
        raise UsageError(f"{name} {value!r}{suggest(str(value), among)} is none of {', '.join(among)}")


def _baseline(context: Context, name: str, given: float | None) -> float | None:
    """The single agent's figure: the parameter, else the trace's label of that name."""
    if given is not None:
        return given
    label = context.trace.labels.get(name)
    return label if isinstance(label, int | float) and label >= 0 else None


def _overhead(context: Context, *, turns_single: float | None) -> Score:
    if not context.graph.steps:
        return Score.undefined(NO_STEP)
    alone = _baseline(context, "turns_single", turns_single)
    if alone is None:
        return Score.undefined(
            "no single-agent baseline: give overhead(turns_single=N), the turns that one agent takes, or "
            'record labels["turns_single"]'
        )
    return coordination.overhead(len(context.graph.steps), alone)


def _error_amplification(context: Context, *, error_single: float | None) -> Score:
    correct = run_correct(context)
    if correct is None:
        return Score.undefined(NO_GOLD)
    alone = _baseline(context, "error_single", error_single)
    if alone is None:
        return Score.undefined(
            "no single-agent baseline: give error_amplification(error_single=E), the share of wrong runs of "
            'one agent alone, or record labels["error_single"]'
        )
    return coordination.error_amplification(1 - correct, alone)


def _message_density(context: Context) -> Score:
    if context.graph.why_no_edges:
        return Score.undefined(context.graph.why_no_edges)
    return coordination.message_density(len(context.graph.unrolled.edge_array), len(context.graph.steps))


def _effective_channels(context: Context, *, outputs: str) -> Score:
    _choice("outputs", outputs, ("last", "mean"))
    if context.embed is None:
        return Score.undefined(context.embed_missing)
    text = said(context)
    rows: dict[str, list[int]] = {}
    for row, step in enumerate(text.steps):
        rows.setdefault(step.agent, []).append(row)
    if len(rows) < 2:
        return Score.undefined("fewer than two agents say anything: channels are counted among several")
    last = {agent: taken[-1] for agent, taken in rows.items()}
    vectors = text.vectors[list(last.values())]
    if outputs == "mean":
        vectors = np.stack([text.vectors[taken].mean(axis=0) for taken in rows.values()])
    known = step_correctness(context)
    correct = None if known.reason else [known.correct[text.steps[row].id] for row in last.values()]
    return coordination.effective_channels(vectors, correct)


def _participation_gini(context: Context, *, of: str) -> Score:
    _choice("of", of, ("text", "tokens", "turns"))
    if len(context.graph.agent_names) < 2:
        return Score.undefined("fewer than two agents speak: shares are among several")
    amounts: dict[str, float] = dict.fromkeys(context.graph.agent_names, 0)
    for step in context.graph.steps:
        amount: float | None = 1
        if of == "text":
            amount = len(" ".join(step.text.split()))
        elif of == "tokens":
            amount = step.usage.tokens_out if step.usage else None
        if amount is None:
            return Score.undefined(
                f"step {step.id!r} has no count of completion tokens: record `usage` with each step, or give "
                "participation_gini(of=text)"
            )
        amounts[step.agent] += amount
    score = coordination.participation_gini(list(amounts.values()))
    if score.value is None:
        return score
    most = max(amounts, key=lambda agent: amounts[agent])
    return Score(score.value, score.parts, detail={"most": most})


def _communication_tax(context: Context, *, tokens: str) -> Score:
    _choice("tokens", tokens, ("recorded", "estimated"))
    if context.graph.why_no_edges:
        return Score.undefined(context.graph.why_no_edges)
    size, spent = (_size, _spent) if tokens == "recorded" else (_estimated_size, _estimated_spent)
    step_of = {step.id: step for step in context.graph.steps}
    allowed = frozenset(EVIDENCE[: EVIDENCE.index(context.graph.evidence) + 1])
    copied = whole = 0.0
    unknown = 0
    for step in context.trace.steps:
        if step.kind not in ("agent", "decision", "control"):
            continue
        sources = [step_of.get(transfer.source) for transfer in step.heard if transfer.evidence in allowed]
        given = sum(size(source) for source in sources if source is not None and source.agent != step.agent)
        amounts = spent(step, given)
        if amounts is None:
            unknown += 1
            continue
        copied += min(given, amounts[0])
        whole += sum(amounts)
    if not whole:
        return Score.undefined(
            "no token counts in the trace: have the framework record `usage` with each call, or give "
            "communication_tax(tokens=estimated)"
        )
    score = coordination.communication_tax(copied, whole)
    return Score(score.value, {**score.parts, "unknown": unknown})


def _size(step: Step) -> float:
    """Tokens of what the step said."""
    usage = step.usage
    if usage is not None and usage.tokens_out is not None and not step.calls:
        return max(0, usage.tokens_out - (usage.tokens_reasoning or 0))
    return _estimated_size(step)


def _spent(step: Step, given: float) -> tuple[float, float] | None:
    """Tokens in and out of the step's model calls, None where they are unknown."""
    usage = step.usage
    if usage is None or usage.tokens_in is None:
        return None
    return usage.tokens_in, usage.tokens_out or 0


def _estimated_size(step: Step) -> float:
    return len(step.text) / CHARACTERS_A_TOKEN


def _estimated_spent(step: Step, given: float) -> tuple[float, float] | None:
    shown = given if step.prompt is None else len(step.prompt) / CHARACTERS_A_TOKEN
    return shown, _estimated_size(step)


OVERHEAD = Metric(
    "overhead", 1, "turns of the team beyond those of one agent alone, as a share of the latter", _overhead,
    (-1, None), "lower", "ratio", "arXiv:2512.08296, section 4.1", parameters={"turns_single": None},
)  # fmt: skip
ERROR_AMPLIFICATION = Metric(
    "error_amplification", 1, "errors of the team for each error of one agent alone", _error_amplification,
    (0, None), "lower", "ratio", "arXiv:2512.08296, section 4.1", ("gold",),
    parameters={"error_single": None}, settings=("answers",),
)  # fmt: skip
MESSAGE_DENSITY = Metric(
    "message_density", 1, "texts that reach another agent, a turn", _message_density,
    (0, None), "", "messages a turn", "arXiv:2512.08296, section 4.1", ("transfers",),
    settings=("evidence",),
)  # fmt: skip
EFFECTIVE_CHANNELS = Metric(
    "effective_channels", 1, "how many independent voices the agents' outputs amount to", _effective_channels,
    (1, None), "higher", "channels", "arXiv:2602.03794; one vector an agent", ("texts", "embedder"),
    parameters={"outputs": "last"}, settings=("answers",), embeds=said_texts,
)  # fmt: skip
PARTICIPATION_GINI = Metric(
    "participation_gini", 1, "how unequally agents contribute: 0 is equally", _participation_gini,
    (0, 1), "", "Gini coefficient", "ours", parameters={"of": "text"},
)  # fmt: skip
COMMUNICATION_TAX = Metric(
    "communication_tax", 1, "share of all tokens that are other agents' texts in prompts", _communication_tax,
    (0, 1), "lower", "share of tokens", "ours", ("transfers", "usage"),
    parameters={"tokens": "recorded"}, settings=("evidence",),
)  # fmt: skip
