"""Who&When: failed runs with the agent and the step to blame, one JSON document a run.

Two kinds share the format. In the algorithm-generated one (AutoGen CaptainAgent) a speaker is its ``name``::

    {"question": "2+2?", "ground_truth": "4", "is_correct": false,
     "mistake_agent": "Adder", "mistake_step": "1", "mistake_reason": "...",
     "history": [{"name": "Adder", "role": "assistant", "content": "..."},
                 {"name": "Computer_terminal", "role": "user", "content": "exitcode: 0 ..."}]}

In the hand-crafted one (Magentic-One) there are no names, and the role says who speaks and to whom::

    "history": [{"role": "human", "content": "..."}, {"role": "Orchestrator (thought)", "content": "..."},
                {"role": "Orchestrator (-> WebSurfer)", "content": "..."}, {"role": "WebSurfer", ...}]

What counts
-----------
* One history item is one step, and its index is the step's id: ``labels["mistake_step"]`` counts from 0 too.
* The chat is shared: everyone hears what was said since their own last turn (broadcast); ``(-> X)`` is
  explicit for X. ``(thought)`` and ``(termination condition)`` are control steps, a terminal is a tool.
* ``labels["mistake_agent"]`` is spelled as the agent is in the history.

Source: Zhang et al., Which Agent Causes Task Failures and When?, ICML 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._chat_log import Names, content_text, items
from counterpoint.adapters._magentic import final_answer, is_directed, turns_of
from counterpoint.adapters._source import each, listed, mentions, opening
from counterpoint.adapters._transfers import to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_LABELS = ("level", "mistake_agent", "mistake_reason", "mistake_type", "system_prompt")


def sniff(source: Source) -> bool:
    """A ``history`` of messages, and a mistake that was made in it, or an orchestrator that thinks aloud."""
    run = opening(source).record
    history = run.get("history")
    if not isinstance(history, list) or not all(isinstance(item, dict) for item in history):
        return False
    if not all({"content", "role"} <= set(item) for item in history[:-1]):
        return False
    # The labels come after the history in one of the two kinds: perhaps beyond the head.
    if mentions(source, "mistake_agent", "mistake_step") or {"question", "ground_truth"} <= set(run):
        return True
    return any(map(is_directed, history))


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run; files of several runs are lists or JSONL of these documents."""
    yield from each(source, _trace, split=listed)


def _trace(run: Any) -> Trace:
    history = items(run, "history", "a Who&When run")
    names = Names()
    turns = turns_of(history, names)
    named = any(item.get("name") for item in history)
    correct = run.get("is_correct", run.get("is_corrected"))
    gold = run.get("ground_truth")
    return to_trace(
        turns,
        id="",
        task=content_text(run.get("question")),
        gold=None if gold is None else content_text(gold),
        answer=final_answer(turns),
        correct=correct if isinstance(correct, bool) else None,
        system="AutoGen CaptainAgent" if named else "Magentic-One",
        labels=_labels(run, names),
    )


def _labels(run: dict[str, Any], names: Names) -> dict[str, Any]:
    labels = {key: run[key] for key in _LABELS if run.get(key) is not None}
    if run.get("question_ID") is not None:
        labels["task_id"] = str(run["question_ID"])
    if isinstance(agent := labels.get("mistake_agent"), str):
        labels["mistake_agent"] = names.known(agent) or agent
    if (step := run.get("mistake_step")) is not None:
        labels["mistake_step"] = int(step) if str(step).strip().isdecimal() else step
    return labels
