"""AgentRx: failed Magentic-One runs as bare lists of messages; who failed stands in a file beside them.

A run::

    [{"role": "human", "content": "What is 2+2?"},
     {"role": "Orchestrator (thought)", "content": "Next speaker Calculator"},
     {"role": "Orchestrator (-> Calculator)", "content": "Please add 2 and 2."},
     {"role": "Calculator", "content": "5"}]

The labels, in a file of the same folder with ``label`` or ``ground_truth`` in its name, several runs in one;
a run's id is the name of its file, or begins with the last part of it::

    [{"trajectory_id": "...", "root_cause": {"failure_id": 1, "reason_for_root_cause": "..."},
      "failures": [{"failure_id": 1, "step_number": 4, "failed_agent": "Calculator",
                    "failure_category": "...", "step_reason": "..."}]}]

What counts
-----------
* As in Who&When: one item is one step, its index is the step's id, the chat is shared (broadcast), ``(-> X)``
  is explicit for X, ``(thought)`` and ``(termination condition)`` are control steps.
* ``labels["mistake_step"]`` counts from 0, as everywhere, although ``step_number`` counts from 1.
* The tau-bench half of the data set is read by `tau_bench`.

What the format cannot tell: times, tokens, prompts, and what is right: there is no gold answer.

Source: microsoft/AgentRx, data set of 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from counterpoint.adapters._beside import failure_labels
from counterpoint.adapters._chat_log import Names, objects
from counterpoint.adapters._magentic import final_answer, is_directed, turns_of
from counterpoint.adapters._source import each, opening
from counterpoint.adapters._transfers import to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """A list of nothing but roles and contents, where some role says to whom or that it is a thought."""
    history = opening(source).value
    if not isinstance(history, list) or not any(map(is_directed, history)):
        return False
    return all(isinstance(item, dict) and set(item) == {"content", "role"} for item in history[:-1])


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run; a file of several has one a line."""
    yield from each(source, partial(_trace, file=source.name))


def _trace(history: Any, *, file: str) -> Trace:
    names = Names()
    turns = turns_of(objects(history, "a Magentic-One run"), names)
    return to_trace(
        turns,
        id="",
        task=next((turn.text for turn in turns if turn.kind == "task"), ""),
        answer=final_answer(turns),
        system="Magentic-One",
        labels=failure_labels(file, names),
    )
