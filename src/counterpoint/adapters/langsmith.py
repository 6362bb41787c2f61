"""LangSmith runs: LangChain's and LangGraph's own tracing, a run a line, in a list, or as a run tree.

::

    {"id": "01a2...", "trace_id": "01a2...", "parent_run_id": null, "name": "planner", "run_type": "chain",
     "dotted_order": "20261130T141919590504Z01a2...", "start_time": "...", "end_time": "...",
     "inputs": {...}, "outputs": {...}, "error": null, "extra": {"metadata": {"langgraph_node": "planner"}}}

A tree holds its runs in ``child_runs``; a batch as sent to the service holds them in ``post`` and ``patch``,
and the two halves of a run are merged. A process that was killed leaves runs without end and output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._items import Items
from counterpoint.adapters._messages import Chat, as_json, chats, role_of, whole
from counterpoint.adapters._otlp import nanoseconds
from counterpoint.adapters._runs import Dialect, traces
from counterpoint.adapters._source import opening
from counterpoint.adapters._spans import Reading, Span, Tree
from counterpoint.adapters.dialects import langgraph
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace, Usage

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """Are these runs of LangSmith?"""
    record = opening(source).record
    batch = record.get("post") or record.get("patch")
    return _is_run(record) or (isinstance(batch, list) and bool(batch) and _is_run(batch[0]))


def _is_run(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return False
    return "run_type" in item and bool(
        {"dotted_order", "trace_id", "child_runs", "parent_run_id"} & set(item)
    )


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every trace among the runs of the file; a TraceError in place of each record that is no run."""
    runs: dict[str, dict[str, Any]] = {}

    def take(run: dict[str, Any] | None) -> bool:
        if run is not None:
            known = runs.setdefault(run["id"], {})
            known.update({key: value for key, value in run.items() if value is not None})
        return run is not None

    items = Items(source, "not a run of LangSmith", split=_runs)
    yield from items.give(take)
    if runs or not items.broken:
        spans = [_span(run) for run in runs.values()]
        dialect = Dialect(_read, facts=_facts)
        yield from traces(spans, dialect, source=source.name, format="langsmith", warnings=items.warnings)


def _runs(value: Any) -> Iterator[dict[str, Any] | None]:
    """Every run in a document, children after parents; None for what is no run."""
    stack = list(reversed(value)) if isinstance(value, list) else [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict) and ("post" in item or "patch" in item):
            halves = [*(item.get("post") or ()), *(item.get("patch") or ())]
            yield from (half for half in halves if isinstance(half, dict) and isinstance(half.get("id"), str))
        elif isinstance(item, dict) and isinstance(item.get("id"), str):
            children = item.get("child_runs")
            for child in reversed(children) if isinstance(children, list) else ():
                if isinstance(child, dict):
                    child.setdefault("parent_run_id", item["id"])
                    child.setdefault("trace_id", item.get("trace_id") or item["id"])
                stack.append(child)
            yield item
        else:
            yield None


def _span(run: dict[str, Any]) -> Span:
    error = run.get("error")
    return Span(
        id=run["id"],
        name=str(run.get("name") or ""),
        trace=str(run.get("trace_id") or run["id"]),
        parent=str(run.get("parent_run_id") or ""),
        start=nanoseconds(run.get("start_time")),
        end=nanoseconds(run.get("end_time")),
        attributes=run,
        error=str(error) if error and "ParentCommand" not in str(error)[:60] else None,
    )


# --- what a run says -----------------------------------------------------------------------------


def _read(span: Span) -> Reading | None:
    run = span.attributes
    inputs, outputs = run.get("inputs"), run.get("outputs")
    kind = run.get("run_type")
    reading: Reading | None = None
    if kind == "llm":
        reading = Reading(
            "model", shown=_prompt(inputs), said=chats(outputs, "assistant"), usage=_usage(run, outputs)
        )
    elif kind == "tool":
        reading = _tool(span, inputs, outputs)
    reading = langgraph.placed(reading, _metadata(run), inputs, outputs)
    if reading is None and not span.parent:
        return Reading(input=inputs, output=outputs)
    return reading


_BUFFER = re.compile(r"^(System|Human|AI|Tool|Function|Developer): ", re.MULTILINE)


def _prompt(inputs: Any) -> list[Chat]:
    """Messages, or prompts as text, in which LangChain marks the messages by role."""
    prompts = inputs.get("prompts", inputs.get("prompt")) if isinstance(inputs, dict) else None
    if prompts is None:
        return chats(inputs, "user")
    found = []
    for text in prompts if isinstance(prompts, list) else [prompts]:
        head, *pieces = _BUFFER.split(text) if isinstance(text, str) else [""]
        found += chats(head, "user")
        found += [
            Chat(body.strip(), role_of(role)) for role, body in zip(pieces[::2], pieces[1::2], strict=True)
        ]
    return found


def _tool(span: Span, inputs: Any, outputs: Any) -> Reading:
    given = inputs.get("input") if isinstance(inputs, dict) and set(inputs) == {"input"} else inputs
    result = outputs.get("output", outputs) if isinstance(outputs, dict) else outputs
    messages = chats(result, "tool")
    return Reading(
        "tool",
        tool=span.name,
        arguments=as_json(given),
        result=messages[0].text if messages else (as_json(result) if result else None),
        call=messages[0].answers if messages else "",
    )


def _metadata(run: dict[str, Any]) -> dict[str, Any]:
    extra = run.get("extra")
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _usage(run: dict[str, Any], outputs: Any) -> Usage | None:
    tokens = _tokens(outputs) or _metadata(run).get("usage_metadata")
    if not isinstance(tokens, dict):
        tokens = {"input_tokens": run.get("prompt_tokens"), "output_tokens": run.get("completion_tokens")}
    tokens_in = whole(tokens.get("input_tokens", tokens.get("prompt_tokens")))
    tokens_out = whole(tokens.get("output_tokens", tokens.get("completion_tokens")))
    if tokens_in is None and tokens_out is None:
        return None
    given, made = tokens.get("input_token_details"), tokens.get("output_token_details")
    cost = run.get("total_cost")
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=whole(given.get("cache_read")) if isinstance(given, dict) else None,
        tokens_reasoning=whole(made.get("reasoning")) if isinstance(made, dict) else None,
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
        model=_model(run),
    )


def _tokens(outputs: Any) -> Any:
    """``usage_metadata`` of the reply, else the provider's totals beside the replies."""
    if not isinstance(outputs, dict):
        return None
    stack = [outputs.get("generations"), outputs.get("message"), outputs]
    while stack:
        item = stack.pop(0)
        if isinstance(item, list):
            stack += item
        elif isinstance(item, dict):
            if isinstance(item.get("usage_metadata"), dict):
                return item["usage_metadata"]
            stack += [item[key] for key in ("message", "kwargs") if isinstance(item.get(key), dict)]
    provider = outputs.get("llm_output")
    return provider.get("token_usage") if isinstance(provider, dict) else None


def _model(run: dict[str, Any]) -> str | None:
    extra = run.get("extra")
    parameters = extra.get("invocation_params") if isinstance(extra, dict) else None
    for source, keys in ((parameters, ("model", "model_name")), (_metadata(run), ("ls_model_name",))):
        for key in keys:
            if isinstance(source, dict) and isinstance(source.get(key), str):
                return str(source[key])
    return None


def _facts(tree: Tree) -> dict[str, Any]:
    labels: dict[str, Any] = {}
    for span in tree.spans:
        metadata = _metadata(span.attributes)
        session = metadata.get("session_id") or metadata.get("thread_id") or metadata.get("conversation_id")
        if session:
            labels.setdefault("session.id", str(session))
    project = tree.spans[0].attributes.get("session_name")
    if project:
        labels["project"] = project
    return {"system": "langchain", "labels": labels}
