"""Adapters: one trace format a file. `read` finds the right one and streams traces; `write` is the way back.

An adapter is a module with ``sniff`` and ``read`` (see `counterpoint.contracts.Adapter`) and a line in TABLE.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoint.adapters._reading import Reading, read, read_source
    from counterpoint.adapters._source import source
    from counterpoint.adapters._writing import write
    from counterpoint.adapters.chat import from_messages

__all__ = ["TABLE", "Reading", "from_messages", "read", "read_source", "source", "write"]

TABLE: dict[str, str] = {
    "native": "counterpoint.adapters.native",
    "recording": "counterpoint.adapters.recording",
    "who_and_when": "counterpoint.adapters.who_and_when",
    "agentrx": "counterpoint.adapters.agentrx",
    "tau_bench": "counterpoint.adapters.tau_bench",
    "tau2_bench": "counterpoint.adapters.tau2_bench",
    "swe_agent": "counterpoint.adapters.swe_agent",
    "dylan": "counterpoint.adapters.dylan",
    "mad": "counterpoint.adapters.mad",
    "puppeteer": "counterpoint.adapters.puppeteer",
    "marble": "counterpoint.adapters.marble",
    "chatdev": "counterpoint.adapters.chatdev",
    "otlp": "counterpoint.adapters.otlp",
    "otel_sdk": "counterpoint.adapters.otel_sdk",
    "phoenix": "counterpoint.adapters.phoenix",
    "langsmith": "counterpoint.adapters.langsmith",
    "mlflow": "counterpoint.adapters.mlflow",
    "langfuse": "counterpoint.adapters.langfuse",
    "langchain_events": "counterpoint.adapters.langchain_events",
    "langgraph_checkpoints": "counterpoint.adapters.langgraph_checkpoints",
    "langgraph_stream": "counterpoint.adapters.langgraph_stream",
    "openai_agents": "counterpoint.adapters.openai_agents",
    "openai_agents_items": "counterpoint.adapters.openai_agents_items",
    "crewai_events": "counterpoint.adapters.crewai_events",
    "crewai_output": "counterpoint.adapters.crewai_output",
    "autogen": "counterpoint.adapters.autogen",
    "autogen_events": "counterpoint.adapters.autogen_events",
    "autogen_team_state": "counterpoint.adapters.autogen_team_state",
    "ag2": "counterpoint.adapters.ag2",
    "ag2_runtime_log": "counterpoint.adapters.ag2_runtime_log",
    "google_adk": "counterpoint.adapters.google_adk",
    "pydantic_ai": "counterpoint.adapters.pydantic_ai",
    "agno": "counterpoint.adapters.agno",
    "smolagents": "counterpoint.adapters.smolagents",
    "atif": "counterpoint.adapters.atif",
    "claude_code": "counterpoint.adapters.claude_code",
    "inspect": "counterpoint.adapters.inspect_log",
    "chat": "counterpoint.adapters.chat",
}
"""Name of each format to the module that reads it; where two would take a file, the earlier one does."""

_HOME = {
    "Reading": "_reading",
    "from_messages": "chat",
    "read": "_reading",
    "read_source": "_reading",
    "source": "_source",
    "write": "_writing",
}


def __getattr__(name: str) -> Any:
    # Listing the formats imports nothing but this table; the rest is imported on first use.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
