"""Decomposers: what finds the propositions in a text. Importing this loads none of them."""

from __future__ import annotations

__all__ = ["TABLE"]

TABLE: dict[str, str] = {
    "sentences": "counterpoint.judges.sentences:Sentences",
    "llm": "counterpoint.judges.propositions:Propositions",
}
