"""What the logs of a shared chat have in common: names, message contents, and who was spoken to.

Names in such logs are all that tells one participant from another, so they are trimmed and compared without
regard to case; the first spelling stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._transfers import Turn
from counterpoint.errors import TraceError
from counterpoint.trace import Call, Usage

__all__ = [
    "Names",
    "content_text",
    "found_keys",
    "hand_over",
    "is_user",
    "items",
    "json_text",
    "objects",
    "settle",
    "spoken_at",
    "usage",
]

_USERS = {"user", "human", "userproxy", "userproxyagent"}


class Names:
    """The participants of one chat, by name without regard to case."""

    def __init__(self) -> None:
        self._spelled: dict[str, str] = {}

    def of(self, name: str) -> str:
        """``name`` as it was first spelled, which may be here."""
        name = name.strip()
        return self._spelled.setdefault(name.casefold(), name)

    def known(self, name: str) -> str | None:
        """``name`` as it was first spelled; None for one who is not in the chat."""
        return self._spelled.get(name.strip().casefold())


def is_user(name: str) -> bool:
    """Is this the name of who gives the task: user, human, user_proxy?"""
    return re.sub(r"[\W_]+", "", name).casefold() in _USERS


def content_text(content: Any) -> str:
    """The text of a message's content: a string, a list of parts of which some are text, or any JSON.

    >>> content_text([{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {}}, "nice"])
    'Look:\\nnice'
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, str | dict) for part in content):
        texts = [part if isinstance(part, str) else part.get("text", "") for part in content]
        return "\n".join(text for text in texts if isinstance(text, str) and text)
    return json_text(content)


def json_text(value: Any) -> str:
    """``value`` as JSON text; text stays as it is, for arguments mostly come encoded already."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def found_keys(record: Mapping[str, Any]) -> str:
    """The first keys of a record, for a message that says which one is missing."""
    return ", ".join(str(key)[:40] for key in list(record)[:8]) or "nothing"


def hand_over(turns: Sequence[Turn], targets: Mapping[str, str]) -> None:
    """Adds an ``explicit`` transfer to the next turn of whoever is spoken to: ``targets``, by turn id."""
    waiting: dict[str, list[str]] = {}
    for turn in turns:
        for source in waiting.pop(turn.agent, ()):
            turn.hear(source, "explicit")
        if turn.id in targets:
            waiting.setdefault(targets[turn.id], []).append(turn.id)


def items(record: Any, key: str, what: str) -> list[dict[str, Any]]:
    """``record[key]``, which has to be a list of objects; a TraceError says what was found instead."""
    if not isinstance(record, dict):
        raise TraceError(f"{what} is a JSON object, found {type(record).__name__}")
    if key not in record:
        raise TraceError(f'{what} has no "{key}" (found: {found_keys(record)})')
    return objects(record[key], f'"{key}" of {what}')


def objects(value: Any, what: str) -> list[dict[str, Any]]:
    """``value``, which has to be a list of objects."""
    if not isinstance(value, list):
        raise TraceError(f"{what} is a list, found {type(value).__name__}")
    for number, item in enumerate(value, 1):
        if not isinstance(item, dict):
            raise TraceError(f"{what}: item {number} is not an object but {type(item).__name__}")
    return value


def settle(calls: list[Call], id: str, result: str, *, tool: str = "", failed: bool = False) -> None:
    """Puts a result to the call of that id, else to the latest open call of that tool, else to a new call."""
    for number in reversed(range(len(calls))):
        call = calls[number]
        same = call.id == id if id else call.tool == tool
        if same and call.result is None and call.error is None:
            break
    else:
        number = len(calls)
        calls.append(Call(id, tool))
    calls[number] = replace(calls[number], error=result) if failed else replace(calls[number], result=result)


def spoken_at(turn: Turn, moment: float | None) -> None:
    """Adds a message's time, when it was done; a turn of several messages began by the first of them."""
    if moment is None:
        return
    if turn.started_at is None and (turn.kind == "task" or turn.ended_at is not None):
        turn.started_at = turn.ended_at if turn.ended_at is not None else moment
    turn.ended_at = moment


def usage(record: Any, *, model: Any = None) -> Usage | None:
    """Tokens as OpenAI-style records count them: ``prompt_tokens``, ``completion_tokens``; None without."""
    if not isinstance(record, dict):
        return None
    counts = [record.get(key) for key in ("prompt_tokens", "completion_tokens")]
    tokens_in, tokens_out = (count if type(count) is int and count >= 0 else None for count in counts)
    if tokens_in is None and tokens_out is None:
        return None
    return Usage(tokens_in, tokens_out, model=model if isinstance(model, str) else None)
