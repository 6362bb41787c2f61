"""Chat histories whose roles say who speaks and to whom, as Magentic-One logs them: one item, one turn.

Such a role is ``WebSurfer``, ``Orchestrator (-> WebSurfer)``, ``Orchestrator (thought)`` or ``human``. Where
an item has a ``name`` as well, that is the speaker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from counterpoint.adapters._chat_log import Names, content_text, found_keys, hand_over, is_user
from counterpoint.adapters._transfers import Turn, add_broadcast
from counterpoint.errors import TraceError
from counterpoint.trace import Kind

__all__ = ["final_answer", "is_directed", "turns_of"]

_ROLE = re.compile(r"\s*(?P<name>.*?)\s*\(\s*(?P<arrow>->)?\s*(?P<what>.*?)\s*\)\s*")
_TERMINALS = {"computer_terminal", "computerterminal"}
_FINAL_ANSWER = re.compile(r"^FINAL ANSWER:[ \t]*(.+)$", re.MULTILINE)


def is_directed(item: Any) -> bool:
    """Does the role of this item say more than who speaks: to whom, or that it is a thought?"""
    return isinstance(item, dict) and _ROLE.fullmatch(str(item.get("role"))) is not None


def turns_of(history: Sequence[dict[str, Any]], names: Names) -> list[Turn]:
    """The turns of a shared chat, with their transfers; a turn's id is its item's index.

    Everyone hears what was said since their own last turn (broadcast), ``(-> X)`` is explicit for X.
    """
    turns: list[Turn] = []
    targets: dict[str, str] = {}
    for index, item in enumerate(history):
        name, kind, target = _speaker(item, index)
        turns.append(Turn(str(index), names.of(name), content_text(item.get("content")), kind))
        if target:
            targets[str(index)] = names.of(target)
    hand_over(turns, targets)
    add_broadcast(turns)
    return turns


def _speaker(item: dict[str, Any], index: int) -> tuple[str, Kind, str]:
    """Name, kind of step, and who is spoken to (empty: everyone)."""
    name = item.get("name") or item.get("role")
    if not isinstance(name, str) or not name.strip():
        raise TraceError(f'history item {index} has neither "name" nor "role" (found: {found_keys(item)})')
    if match := _ROLE.fullmatch(name):
        return (match["name"], "agent", match["what"]) if match["arrow"] else (match["name"], "control", "")
    if is_user(name):
        return name, "task", ""
    return name, "tool" if name.strip().casefold() in _TERMINALS else "agent", ""


def final_answer(turns: Sequence[Turn]) -> str | None:
    """What the runner printed as the final answer, which the log has at the end of the last message."""
    found = _FINAL_ANSWER.findall(turns[-1].text) if turns else []
    return found[-1].strip() if found else None
