"""Which framework and service a run is of, and its session: facts that spans of any convention hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

from counterpoint.adapters._spans import Tree

__all__ = ["facts"]

_SCOPES = (
    ("autogen", "autogen"),
    ("openai_agents", "openai-agents"),
    ("crewai", "crewai"),
    ("smolagents", "smolagents"),
    ("agno", "agno"),
    ("gcp.vertex.agent", "google-adk"),
    ("google_adk", "google-adk"),
    ("agent_framework", "ms-agent-framework"),
    ("strands", "strands"),
    ("pydantic-ai", "pydantic-ai"),
    ("langchain", "langchain"),
    ("langfuse", "langfuse"),
    ("llama_index", "llama-index"),
    ("mlflow", "mlflow"),
)
_SESSION = (
    "session.id",
    "langfuse.session.id",
    "gen_ai.conversation.id",
    "traceloop.association.properties.session_id",
)
_WANTED = frozenset((*_SESSION, "user.id", "langfuse.trace.name"))


_PREFIXES = (
    ("agno.", "agno"),
    ("smolagents.", "smolagents"),
    ("crew_", "crewai"),
    ("pydantic_ai.", "pydantic-ai"),
    ("gcp.vertex.agent.", "google-adk"),
)


def facts(tree: Tree) -> dict[str, Any]:
    """``system`` and ``labels`` of the trace."""
    labels: dict[str, Any] = {}
    for span in tree.spans:
        if not _WANTED.isdisjoint(span.attributes):
            for key in sorted(_WANTED & span.attributes.keys()):
                labels.setdefault(key, span.attributes[key])
    session = next((labels[key] for key in _SESSION if key in labels), None)
    if session is not None:
        labels["session.id"] = session
    service = next((span.service for span in tree.spans if span.service), "")
    if service:
        labels["service.name"] = service
    return {"system": _system(tree), "labels": labels}


def _system(tree: Tree) -> str:
    """The framework: by the instrumentation that most spans come from, else by attributes of its own."""
    scopes = Counter(span.scope for span in tree.spans if span.scope)
    for scope, _ in scopes.most_common():
        for mark, name in _SCOPES:
            if mark in scope:
                return name
    for span in tree.spans[:_LOOKED_AT]:
        for key in span.attributes:
            for prefix, name in _PREFIXES:
                if key.startswith(prefix):
                    return name
        vendor = span.attributes.get("gen_ai.system") or span.attributes.get("gen_ai.provider.name")
        if isinstance(vendor, str):
            for mark, name in _SCOPES:
                if mark in vendor:
                    return name
    return next(iter(scopes), "")


_LOOKED_AT = 200
