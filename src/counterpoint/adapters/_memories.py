"""Chat memories, one an agent, as debates keep them: what an agent said is ``assistant`` in its own memory,
and stands inside a ``user`` message in the memories of those who were told.

Who heard whom is found by text (see `add_told`); the rule is stricter than that of `_transfers`, which does
not know that the turns of a round were taken at the same time, and cannot tell a reply from its repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from counterpoint.adapters._chat_log import content_text, found_keys, objects
from counterpoint.adapters._containment import MIN_CHARACTERS, normal
from counterpoint.adapters._transfers import Message, Turn
from counterpoint.errors import TraceError

__all__ = ["add_told", "is_memory", "memory_turns"]


def is_memory(value: Any) -> bool:
    """Is this a list of chat messages? The last one may be cut off."""
    if not isinstance(value, list):
        return False
    return all(isinstance(item, dict) and {"role", "content"} <= set(item) for item in value[:-1])


def memory_turns(agent: str, memory: Any) -> list[Turn]:
    """The turns of one agent, in order; each was shown what came since the one before."""
    turns: list[Turn] = []
    shown: list[Message] = []
    for number, item in enumerate(objects(memory, f"the memory of {agent!r}"), 1):
        role = item.get("role")
        if not isinstance(role, str) or not role:
            raise TraceError(f'message {number} of {agent!r} has no "role" (found: {found_keys(item)})')
        text = content_text(item.get("content"))
        if role == "assistant":
            turns.append(Turn(f"{agent} {len(turns) + 1}", agent, text, shown=[shown]))
            shown = []
        else:
            shown.append(Message(text, role))
    return turns


def add_told(turns: Sequence[Turn], *, at_once: bool) -> None:
    """Adds a ``context`` transfer from each earlier turn whose text (40 characters or more) a turn was told.

    Of several turns of one agent with the same text it is the latest, and a text that stands in a longer one
    of the same agent came with that. ``at_once``: earlier are turns of lower rounds only; else, in order.
    """
    texts = [normal(turn.text) if len(turn.text) >= MIN_CHARACTERS else b"" for turn in turns]
    for place, turn in enumerate(turns):
        told = b"\0".join(normal(message.text) for prompt in turn.shown for message in prompt)
        found: dict[str, list[bytes]] = {}
        for earlier in range(place - 1, -1, -1):
            source, text = turns[earlier], texts[earlier]
            if not text or source.agent == turn.agent or (at_once and source.round == turn.round):
                continue
            known = found.setdefault(source.agent, [])
            if not any(text in longer for longer in known) and text in told:
                known.append(text)
                turn.hear(source.id, "context")
