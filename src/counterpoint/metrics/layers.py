"""The redundancy of a trace, layer by layer: what counts as an item, a retrieval, a task, a claim.

Conventions
-----------
The measures, their ranges and their parts are those of `redundancy`; here they are fed from a trace.

What counts
-----------
* Memory: an item is an entry of the list that a call of a retrieval tool returned, or else all that it
  returned, by its words. Which tools retrieve is told by their names, parameter ``tools``.
* Reasoning: a step repeats another agent's by the cosine of their embeddings, or because the texts are equal.
  On traces of more than ``window + 1`` steps, near duplicates that are farther apart than ``window`` steps
  and not equal are missed (see `near`); ``pair_rate`` is over the pairs compared.
* Tasks: what ``labels["assignments"]`` says ({task: [agents]}); else task steps that an agent heard
  explicitly, and requests to an agent called as a tool. Near ones count as one task. The run's own task is
  everybody's and no assignment.
* Knowledge: an item is a sentence of three words or more, a delivery one transfer of it to another agent.

Differences from the paper
--------------------------
The paper measures its own system, whose memory, thoughts and sub-tasks are nodes. What stands for them in
the traces of other frameworks is ours.

Source: D3MAS, Figure 1, and its knowledge duplication rate.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from counterpoint.contracts import Context, Metric
from counterpoint.errors import UsageError
from counterpoint.json_text import parse_json
from counterpoint.metrics import redundancy
from counterpoint.metrics.near import WINDOW, clusters, codes, nearest_earlier, said, said_texts, unit_rows
from counterpoint.metrics.redundancy import NEAR
from counterpoint.metrics.repetition import lines
from counterpoint.metrics.similarity import words
from counterpoint.score import Score
from counterpoint.trace import Step

__all__ = [
    "KNOWLEDGE_DUPLICATION",
    "MEMORY_REDUNDANCY",
    "REASONING_REDUNDANCY",
    "TASK_REDUNDANCY",
    "sentences",
]


def _memory(context: Context, *, tools: str) -> Score:
    try:
        is_retrieval = re.compile(tools, re.IGNORECASE).search
    except re.error as error:
        raise UsageError(f"memory_redundancy: tools {tools!r} is no regular expression: {error}") from None
    calls = [(step.agent, call) for step in context.graph.steps for call in step.calls]
    retrieved: dict[Hashable, set[Hashable]] = {}
    for agent, call in calls:
        if is_retrieval(call.tool):
            retrieved.setdefault(agent, set()).update(_items(call.result))
    score = redundancy.memory(retrieved)
    if score.value is not None:
        return score
    known = ", ".join(dict.fromkeys(call.tool for _, call in calls))
    if not calls:
        reason = "no tool call is recorded: record each retrieval as a call with its result"
    elif not retrieved:
        reason = f"no tool retrieves, by its name (tools: {known[:200]}): give memory_redundancy(tools=REGEX)"
    else:
        reason = "calls of retrieval tools have no result: record what they returned"
    return replace(score, reason=reason)


def _items(result: str | None) -> Iterator[str]:
    """What a retrieval gave: the entries of a list, or of the longest list in an object; else all of it."""
    if result is None or not result.strip():
        return
    try:
        found, _ = parse_json(result)
    except ValueError:
        found = result
    if isinstance(found, Mapping):
        found = max((value for value in found.values() if isinstance(value, list)), key=len, default=found)
    for item in found if isinstance(found, list) else [found]:
        key = " ".join(words(str(item)))
        if key:
            yield key


def _reasoning(context: Context, *, threshold: float, window: int) -> Score:
    if context.embed is None:
        return Score.undefined(context.embed_missing)
    if len(context.graph.agent_names) < 2:
        return Score.undefined("fewer than two agents speak: one repeats what another said")
    text = said(context)
    if not text.steps:
        return Score.undefined("no step says anything: record what each agent said as the step's text")
    agents = codes([step.agent for step in text.steps])
    found = nearest_earlier(text.vectors, threshold, groups=agents, texts=text.texts, window=window)
    repeats = np.flatnonzero(found.index >= 0)
    pairs = {"near_pairs": found.near, "pairs": found.pairs}
    score = redundancy.with_pairs(len(repeats), len(text.steps), pairs)
    parts = {**score.parts, "missing": text.missing, "truncated": text.truncated}
    if found.windowed:
        parts["window"] = window
    detail = {}
    if len(repeats):
        step, earlier = text.steps[repeats[0]], text.steps[found.index[repeats[0]]]
        detail["first"] = f"{step.id} ({step.agent}) repeats {earlier.id} ({earlier.agent})"
    return replace(score, parts=parts, detail=detail)


def _task(context: Context, *, threshold: float) -> Score:
    recorded = context.trace.labels.get("assignments")
    if isinstance(recorded, Mapping):
        return redundancy.task({name: _names(agents) for name, agents in recorded.items()})
    given, unclear = _assignments(context)
    unclear_part = {"unclear": unclear}
    if not given:
        return Score.undefined(
            "no assignment is recorded: record sub-tasks as steps of kind task that agents hear, or "
            'labels["assignments"] = {task: [agents]}',
            parts=unclear_part,
        )
    holders: dict[Hashable, set[Hashable]] = {}
    tasks = _distinct(context, [step.text for step, _ in given], threshold)
    for cluster, (_, agent) in zip(tasks.tolist(), given, strict=True):
        holders.setdefault(cluster, set()).add(agent)
    score = redundancy.task(holders)
    return replace(score, parts={**score.parts, **unclear_part})


def _distinct(context: Context, texts: list[str], threshold: float) -> NDArray[np.int64]:
    """A number for each text, equal for equal and for near ones."""
    number = codes([" ".join(words(text)) for text in texts])
    if context.embed is None:
        return number
    said(context)  # first, as the embedder may forget many texts over a few others
    some = [texts[at] for at in np.unique(number, return_index=True)[1]]
    return clusters(unit_rows(context.embed(some), len(some)), threshold)[number]


def _names(agents: Any) -> set[str]:
    return set(map(str, agents)) if isinstance(agents, list | tuple) else {str(agents)}


def _assignments(context: Context) -> tuple[list[tuple[Step, str]], int]:
    """(task, agent) as told by explicit transfers from task steps and by requests; and unclear requests.

    A step that calls several agents at once holds the requests to all of them in one text: unclear.
    """
    step_of = {step.id: step for step in context.trace.steps}
    whole = context.trace.task.strip()
    given: list[tuple[Step, str]] = []
    requests: dict[str, list[str]] = {}
    waiting: set[tuple[str, str]] = set()  # (caller, called) of calls that have not returned
    for step in context.trace.steps:
        for transfer in step.heard:
            source = step_of[transfer.source]
            if source.kind == "task" and transfer.evidence == "explicit" and step.kind == "agent":
                given.append((source, step.agent))
            elif transfer.evidence == "call" and source.kind == step.kind == "agent":
                if (step.agent, source.agent) in waiting:
                    waiting.discard((step.agent, source.agent))
                else:
                    waiting.add((source.agent, step.agent))
                    requests.setdefault(source.id, []).append(step.agent)
    clear = {name: agents[0] for name, agents in requests.items() if len(set(agents)) == 1}
    given += [(step_of[name], agent) for name, agent in clear.items()]
    return [pair for pair in given if pair[0].text.strip() not in ("", whole)], len(requests) - len(clear)


LEAST_WORDS = 3
"""A shorter sentence claims nothing."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, as their words; each once, in order.

    >>> sentences("Yes. We need 4 tins. We need 4 tins!")
    ['we need 4 tins']
    """
    found = (words(piece) for piece in lines(text))
    return list(dict.fromkeys(" ".join(tokens) for tokens in found if len(tokens) >= LEAST_WORDS))


def _knowledge(context: Context) -> Score:
    if context.graph.why_no_edges:
        return Score.undefined(context.graph.why_no_edges)
    steps = context.graph.steps
    edges = context.graph.unrolled.edge_array
    order = np.lexsort((edges[:, 0], edges[:, 1]))
    items: dict[int, list[str]] = {}

    def deliveries() -> Iterator[tuple[str, str, str]]:
        for source, target in edges[order].tolist():
            if source not in items:
                items[source] = sentences(steps[source].text)
            for item in items[source]:
                yield steps[source].agent, steps[target].agent, item

    score = redundancy.knowledge_duplication(deliveries())
    if score.value is None:
        return replace(score, reason="no text that was passed on has a sentence of three words or more")
    return score


FIGURE = "D3MAS, Figure 1; denominators ours"

MEMORY_REDUNDANCY = Metric(
    "memory_redundancy", 1, "share of retrieved items that two agents or more retrieved", _memory,
    (0, 1), "lower", "share of items", FIGURE, ("calls",),
    parameters={"tools": "retriev|recall|memor|search|look_?up|fetch|browse|query|(?<![a-z])read"},
)  # fmt: skip
REASONING_REDUNDANCY = Metric(
    "reasoning_redundancy", 1, "share of steps that another agent's earlier step says already", _reasoning,
    (0, 1), "lower", "share of steps", FIGURE, ("texts", "embedder"),
    parameters={"threshold": NEAR, "window": WINDOW}, embeds=said_texts,
)  # fmt: skip
TASK_REDUNDANCY = Metric(
    "task_redundancy", 1, "share of assigned tasks that two agents or more were given", _task,
    (0, 1), "lower", "share of tasks", FIGURE, ("texts", "embedder"), parameters={"threshold": NEAR},
)  # fmt: skip
KNOWLEDGE_DUPLICATION = Metric(
    "knowledge_duplication", 1, "share of delivered sentences that had been delivered before", _knowledge,
    (0, 1), "lower", "share of deliveries", "D3MAS, knowledge duplication rate; items ours",
    ("texts", "transfers"), settings=("evidence",),
)  # fmt: skip
