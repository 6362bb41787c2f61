"""Two records of one run made one trace: the spans of the OpenAI Agents SDK, and the items of the run.

Over the Responses API the exported spans have times and tokens, but no text; the items have the text, but
neither times nor tokens. Where both are read they are the same run if both have one trace id, or, if the
items name none, if the same agents made the same calls with the same results. Where that holds of several
runs nothing is joined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from counterpoint.trace import Step, Trace

__all__ = ["pair"]

_SPANS, _ITEMS = "openai_agents", "openai_agents_items"
_MENDED = ("model calls have no reply text", "model calls have no token counts")
"""Warnings that the other half may answer."""


def pair(traces: Iterable[Trace]) -> Iterator[Trace]:
    """The traces with both halves of a run joined; halves come last, all others as they are read.

    A half is what items were read to, or spans of which no text is known.
    """
    spans: list[Trace] = []
    items: list[Trace] = []
    for trace in traces:
        if trace.labels.get("format") == _ITEMS:
            items.append(trace)
        elif trace.labels.get("format") == _SPANS and not any(step.text for step in trace.steps):
            spans.append(trace)
        else:
            yield trace
    partners = _partners(spans, items)
    taken = {id(partner) for partner in partners.values()}
    for trace in spans:
        yield _merged(trace, partners[id(trace)]) if id(trace) in partners else trace
    yield from (trace for trace in items if id(trace) not in taken)


def _partners(spans: list[Trace], items: list[Trace]) -> dict[int, Trace]:
    """By the id of each spans' object the items of the same run, where that is beyond doubt."""
    by_key: dict[Any, tuple[list[Trace], list[Trace]]] = defaultdict(lambda: ([], []))
    for trace in spans:
        by_key[trace.labels.get("trace_id")][0].append(trace)
        by_key[_calls(trace)][0].append(trace)
    for trace in items:
        by_key[trace.labels.get("trace_id") or _calls(trace)][1].append(trace)
    return {id(first[0]): second[0] for first, second in by_key.values() if len(first) == len(second) == 1}


def _calls(trace: Trace) -> tuple[Any, ...]:
    return tuple(
        (step.agent, *((call.tool, call.arguments, call.result) for call in step.calls))
        for step in trace.steps
    )


def _merged(spans: Trace, items: Trace) -> Trace:
    """The spans' trace with the text of the items; steps are the same if the agents are, in order."""
    told: dict[str, list[Step]] = defaultdict(list)
    for step in reversed(items.steps):
        told[step.agent].append(step)
    steps = []
    same: dict[str, str] = {}
    for step in spans.steps:
        if told[step.agent]:
            other = told[step.agent].pop()
            same[other.id] = step.id
            heard = [
                replace(transfer, source=same[transfer.source])
                for transfer in other.heard
                if transfer.source in same
            ]
            step = replace(step, text=other.text, prompt=other.prompt, heard=(*step.heard, *heard))
        steps.append(step)
    warnings = dict.fromkeys((*spans.warnings, *items.warnings))
    return replace(
        spans,
        steps=tuple(steps),
        task=spans.task or items.task,
        answer=items.answer,
        labels={**items.labels, **spans.labels},
        warnings=tuple(warning for warning in warnings if not warning.endswith(_MENDED)),
    )
