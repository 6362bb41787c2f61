"""LangGraph and LangChain: which node of which graph a span belongs to, from the metadata of its run.

``langgraph_checkpoint_ns`` is the path of nodes from the outermost graph to this run, each with the id of
the node's run: ``supervisor:3e79...|agent:84c1...``. The agent is the innermost node with a name of its own;
nodes like *agent* and *tools* are the machinery of one. Without a path there is ``langgraph_node`` alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from counterpoint.adapters._messages import whole
from counterpoint.adapters._spans import Reading

__all__ = ["KEYS", "node", "placed"]

KEYS = ("langgraph_node", "langgraph_step", "langgraph_checkpoint_ns", "checkpoint_ns")
"""The keys of the metadata that `node` looks at."""

_MACHINERY = re.compile(
    r"agent|model|llm|tools?|tool_node|call_(agent|model|llm|tools?)|model_request|run_tools"
    r"|generate_structured_response|(pre|post)_model_hook|__\w+__|\w+\.(before|after)_(model|agent)|"
)


def node(metadata: Mapping[str, Any]) -> tuple[str, str, int | None] | None:
    """Agent, instance and super-step; the agent is empty where machinery alone is named. None: no LangGraph.

    >>> node({"langgraph_checkpoint_ns": "boss:1|agent:2", "langgraph_step": 3})
    ('boss', 'boss:1', None)
    >>> node({"langgraph_node": "classify", "langgraph_step": 3})
    ('classify', '', 3)
    """
    own = metadata.get("langgraph_node")
    if not isinstance(own, str):
        own = ""
    path = metadata.get("langgraph_checkpoint_ns") or metadata.get("checkpoint_ns")
    if not isinstance(path, str) or not path:
        if not own:
            return None
        return ("" if _MACHINERY.fullmatch(own) else own), "", _step(metadata)
    runs = path.split("|")
    for depth in range(len(runs), 0, -1):
        name = runs[depth - 1].partition(":")[0]
        if not _MACHINERY.fullmatch(name):
            # Steps are counted anew in each graph: only those of the outermost one can be compared.
            return name, "|".join(runs[:depth]), _step(metadata) if len(runs) == 1 else None
    return "", "", None


def _step(metadata: Mapping[str, Any]) -> int | None:
    return whole(metadata.get("langgraph_step"))


def placed(reading: Reading | None, metadata: Any, given: Any, gave: Any) -> Reading | None:
    """The reading with LangGraph's word on whose turn the span belongs to, where ``metadata`` holds it.

    A span of no kind of its own is the run of a node, ``given`` and ``gave`` the state before and after.
    That a span is an agent's says nothing there: tracers guess it from the node's name.
    """
    found = node(metadata) if isinstance(metadata, Mapping) else None
    if found is None:
        return reading
    agent, instance, step = found
    if reading is None or reading.role == "agent":
        if not agent:
            return None
        reading = Reading("agent", input=given, output=gave, state=True)
    reading.agent, reading.instance, reading.step = agent, instance, step
    reading.rule, reading.framework = "metadata.langgraph_node", "langgraph"
    return reading
