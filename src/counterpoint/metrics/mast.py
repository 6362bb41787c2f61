"""Failure modes of MAST that a trace alone can show: five of the fourteen, by rule, as proxies.

Conventions
-----------
* The value is how many of the judged modes are shown at least once; each mode's count is a part of its name,
  and the first step that shows it stands in ``detail``. A mode that the trace cannot carry has no part.
* A proxy is a rule, not a verdict: MAST's labels are those of human readers, who agree at κ = .88.

What counts
-----------
* ``step_repetition`` (1.3): steps that make the same calls as an earlier step of their agent and say nearly
  the same, by a cosine above `NEAR` or as equal texts. The agent's last `OWN_WINDOW` such steps are compared.
* ``unaware_of_termination`` (1.5): turns of agents after the last decision step. Judged where there is one.
* ``withholding`` (2.4): texts that reach nobody, neither themselves nor in the agent's next text that does
  (which repeats under half of their words). An agent's last text is left out unless it is known what the
  decision heard. Judged where transfers are known.
* ``ignored_input`` (2.5): steps none of whose inputs is taken up, by the threshold of mean uptake; the part
  ``uptake`` is the share of all inputs that are. Judged where transfers are known.
* ``no_verification`` (3.2): 1 if nobody with the role of critic, verifier or tester acts before the last
  decision step, or at all where there is none.

Source: MAST (arXiv:2503.13657), the taxonomy of multi-agent system failures; the proxies are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from counterpoint.contracts import Context, Metric
from counterpoint.metrics.near import Said, codes, nearest_earlier, said, said_texts
from counterpoint.metrics.panel import containment, mean_uptake
from counterpoint.metrics.repetition import canonical_arguments
from counterpoint.metrics.rolegraph import actions, role_graph
from counterpoint.score import Score
from counterpoint.trace import Step

__all__ = ["MAST_MODES"]

NEAR = 0.95
OWN_WINDOW = 256
UPTAKE = 0.5
SENT = 0.5
"""A text is sent along with a later one that repeats at least this share of its words."""

VERIFYING = frozenset({"critic", "verifier", "tester"})


def _repeated(context: Context, text: Said) -> list[Step]:
    """Steps that repeat an earlier action of their agent (1.3)."""
    action = codes([(step.agent, *_calls(step)) for step in text.steps])
    order = np.argsort(action, kind="stable")
    starts = np.flatnonzero(np.diff(action[order], prepend=-1))
    again: set[str] = set()
    for rows in np.split(order, starts[1:]):
        if len(rows) < 2:
            continue
        found = nearest_earlier(text.vectors[rows], NEAR, texts=text.texts[rows], window=OWN_WINDOW)
        again.update(text.steps[row].id for row in rows[found.index >= 0])
    silent: set[tuple[str, ...]] = set()
    for step in context.graph.steps:
        if step.calls and not step.text.strip():
            key = (step.agent, *_calls(step))
            if key in silent:
                again.add(step.id)
            silent.add(key)
    return [step for step in context.graph.steps if step.id in again]


def _calls(step: Step) -> list[str]:
    return [f"{call.tool} {canonical_arguments(call.arguments)}" for call in step.calls]


def _ignoring(context: Context, text: Said) -> tuple[Score, list[Step]]:
    """Mean uptake of inputs, and the steps none of whose inputs is taken up (2.5)."""
    row = {step.id: at for at, step in enumerate(text.steps)}
    place = np.array([row.get(step.id, -1) for step in context.graph.steps], dtype=np.int64)
    ends = place[context.graph.unrolled.edge_array]
    ends = ends[(ends >= 0).all(axis=1)]
    step = 1 << 14  # pairs of rows gathered at once
    cosines = [
        np.einsum("ij,ij->i", text.vectors[part[:, 0]], text.vectors[part[:, 1]])
        for part in (ends[at : at + step] for at in range(0, len(ends), step))
    ]
    score = mean_uptake(np.concatenate([np.empty(0), *cosines]), UPTAKE)
    best = np.full(len(text.steps), -np.inf)
    if len(ends):
        np.maximum.at(best, ends[:, 1], np.concatenate(cosines))
    ignoring = np.flatnonzero(np.isfinite(best) & (best < UPTAKE))
    return score, [text.steps[at] for at in ignoring]


def _withheld(context: Context) -> Iterator[Step]:
    """Steps whose text reaches nobody, now or with the agent's next text that does (2.4)."""
    steps = context.graph.steps
    decisions = [step for step in context.trace.steps if step.kind == "decision"]
    read = {transfer.source for step in decisions for transfer in step.heard}
    heard = set(context.graph.unrolled.edge_array[:, 0].tolist())
    spoken = [number in heard or step.id in read for number, step in enumerate(steps)]
    following: dict[str, str | None] = {}  # agent to its next text that reaches someone
    found = []
    for number in range(len(steps) - 1, -1, -1):
        step = steps[number]
        if spoken[number]:
            following[step.agent] = step.text
        elif step.agent in following or read:
            sent = following.get(step.agent)
            share = containment(step.text, sent) if sent else 0.0
            if step.text.strip() and share is not None and share < SENT:
                found.append(step)
    return reversed(found)


def _late(context: Context) -> list[Step] | None:
    """Turns of agents after the last decision step (1.5); None without one."""
    steps = context.trace.steps
    last = next((at for at in range(len(steps) - 1, -1, -1) if steps[at].kind == "decision"), None)
    return None if last is None else [step for step in steps[last + 1 :] if step.kind == "agent"]


def _unverified(context: Context) -> bool:
    """Whether nobody verifies before the last decision (3.2)."""
    nodes, roles = actions(context.graph.trace), role_graph(context).roles
    decided = [at for at, node in enumerate(nodes) if node.kind == "decision"]
    return VERIFYING.isdisjoint(roles[: decided[-1] if decided else len(roles)])


def _mast_modes(context: Context) -> Score:
    if context.embed is None:
        return Score.undefined(context.embed_missing)
    text = said(context)
    if not text.steps:
        return Score.undefined("no step says anything: record what each agent said as the step's text")
    shown: dict[str, list[Step]] = {"step_repetition": _repeated(context, text)}
    extra: dict[str, float] = {}
    late = _late(context)
    if late is not None:
        shown["unaware_of_termination"] = late
    if not context.graph.why_no_edges:
        shown["withholding"] = list(_withheld(context))
        uptake, shown["ignored_input"] = _ignoring(context, text)
        if uptake.value is not None:
            extra["uptake"] = uptake.value
    parts: dict[str, int | float] = {name: len(steps) for name, steps in shown.items()}
    parts["no_verification"] = int(_unverified(context))
    detail = {name: f"{steps[0].id} ({steps[0].agent})" for name, steps in shown.items() if steps}
    modes = sum(count > 0 for count in parts.values())
    return Score(modes, {**parts, "judged": len(parts), **extra}, detail=detail)


MAST_MODES = Metric(
    "mast_modes", 1, "failure modes of MAST that the trace shows, of five that rules can tell", _mast_modes,
    (0, 5), "lower", "modes", "MAST (arXiv:2503.13657); proxies ours", ("texts", "embedder"),
    settings=("evidence",), embeds=said_texts,
)  # fmt: skip
