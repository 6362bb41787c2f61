"""AG2 (and AutoGen 0.2): the ChatResult that ``initiate_chat`` returns, as JSON.

::

    {"chat_history": [{"content": "Build a parser.", "role": "assistant", "name": "Admin"},
                      {"content": "First ...", "role": "user", "name": "Planner"}],
     "summary": "...", "cost": {"usage_excluding_cached_inference": {"total_cost": 0, "small": {...}}},
     "per_agent_messages": {"Planner": {"chat_manager": [{"content": "Build a parser.", ...}]}}}

``per_agent_messages`` is each agent's ``chat_messages``, which a program may save besides.

What counts
-----------
* A speaker is the message's name, for its role is relative to whose memory it stands in; a memory of one
  peer calls its owner's messages ``assistant``. Whoever opens the chat is an agent too, unless named user.
* A request of tools, their results and the next message of the same agent are one step; the request itself
  has no name.
* With the agents' memories, messages of others since the agent's own last one are heard (context);
  without them everyone hears the shared chat (broadcast).
* **Not in the file**: times, and tokens by call; the run's totals stand in ``labels["run_usage"]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from counterpoint.adapters._ag2 import answer_calls, calls_of
from counterpoint.adapters._chat_log import Names, content_text, is_user, items
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters._transfers import Message, Turn, add_broadcast, add_context, to_trace, total_usage
from counterpoint.adapters._usage import run_usage, usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """An object with ``chat_history``."""
    history = opening(source).record.get("chat_history")
    return isinstance(history, list) and bool(history) and isinstance(history[0], dict)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every ChatResult; files of several are lists or JSONL of them."""
    yield from each(source, _trace, split=listed)


def _trace(result: Any) -> Trace:
    names = Names()
    turns: list[Turn] = []
    history = list(items(result, "chat_history", "a ChatResult"))
    for index, message in enumerate(history):
        _add(message, index, names.of(_speaker(history, index)), turns)
    memories = result.get("per_agent_messages")
    for owner, memory in memories.items() if isinstance(memories, dict) else ():
        own = [turn for turn in turns if turn.agent == names.known(owner)]
        for peer in memory.values() if isinstance(memory, dict) else ():
            _show(
                [each for each in peer if isinstance(each, dict)] if isinstance(peer, list) else [],
                owner,
                own,
            )
    add_context(turns)
    known = [dict(turn.heard) if turn.shown else None for turn in turns]
    add_broadcast(turns)
    for turn, heard in zip(turns, known, strict=True):
        turn.heard = turn.heard if heard is None else heard
    return to_trace(turns, id="", task=turns[0].text if turns else "", system="ag2", labels=_labels(result))


def _speaker(history: Sequence[dict[str, Any]], index: int) -> str:
    """Who said a message; a request of tools bears no name, and is by who speaks after their results."""
    message = history[index]
    name = message.get("name")
    if not name and any(calls_of(message, index)):
        spoken = (each for each in history[index + 1 :] if each.get("role") not in ("tool", "function"))
        name = next((each["name"] for each in spoken if each.get("name")), None)
    return str(name or message.get("role") or "agent")


def _add(message: dict[str, Any], index: int, name: str, turns: list[Turn]) -> None:
    """Adds a message to the turn that it belongs to."""
    if answer_calls(message, turns) is not None:
        return
    turn = turns[-1] if turns and turns[-1].agent == name and turns[-1].calls else None
    if turn is None:
        turn = Turn(str(index), name, kind="task" if is_user(name) else "agent")
        turns.append(turn)
    turn.text = "\n\n".join(filter(None, [turn.text, content_text(message.get("content"))]))
    turn.calls += calls_of(message, index)


def _show(memory: Sequence[dict[str, Any]], owner: str, turns: Sequence[Turn]) -> None:
    """Gives the turns of a memory's owner what stands before them there."""
    waiting = list(turns)
    before: list[Message] = []
    for message in memory:
        text = content_text(message.get("content"))
        own = message.get("role") == "assistant" or message.get("name") == owner
        if own and waiting and text.strip() in waiting[0].text:
            waiting.pop(0).shown.append(list(before))
        before.append(Message(text, "assistant" if own else "user"))


def _labels(result: dict[str, Any]) -> dict[str, Any]:
    cost = result.get("cost")
    models = cost.get("usage_excluding_cached_inference") if isinstance(cost, dict) else None
    used = [usage_of(each, model=name) for name, each in models.items()] if isinstance(models, dict) else []
    total = total_usage(used)
    labels = run_usage({"input_tokens": total.tokens_in, "output_tokens": total.tokens_out}) if total else {}
    if total and total.cost_usd is not None:
        labels["run_usage"]["cost_usd"] = total.cost_usd
    summary = result.get("summary")
    return {**labels, "summary": summary} if isinstance(summary, str) and summary else labels
