"""AutoGen's runtime: what each agent was delivered, from ``autogen process`` spans.

One run is dozens of traces joined by links. No span is a model call; a turn is an ``invoke_agent`` span, its
text the ``chat_message`` of that agent, which the process spans of all who got it repeat. The group chat
manager is no agent, except where it speaks itself (Magentic-One). A turn heard what its agent was delivered
since its turn before.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from counterpoint.adapters._messages import as_json, as_text, json_or_text, whole
from counterpoint.adapters._spans import Tree
from counterpoint.adapters._transfers import Message, Turn, total_usage
from counterpoint.trace import Call, Usage

__all__ = ["turns"]

_TEAM = re.compile(r"_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}.*")


def turns(tree: Tree) -> list[Turn] | None:
    """All turns, in time order, with their deliveries; None where the spans are not of AutoGen's runtime."""
    if not any(span.name.startswith("autogen process ") for span in tree.spans):
        return None
    return _Chat(tree).turns


class _Chat:
    def __init__(self, tree: Tree) -> None:
        self.turns: list[Turn] = []
        self.by_message: dict[str, Turn] = {}
        self.inbox: dict[str, list[str]] = defaultdict(list)
        """Messages delivered to each agent since its last turn."""
        self.waiting: dict[str, list[Turn]] = defaultdict(list)
        """Turns of each agent whose message has not come yet."""
        in_time = sorted(zip(tree.starts, tree.spans, strict=True), key=lambda pair: (pair[0], pair[1].id))
        for _, span in in_time:
            if span.attributes.get("gen_ai.operation.name") == "invoke_agent":
                turn = self._turn(str(span.attributes.get("gen_ai.agent.name") or span.name), span.id)
                turn.started_at = span.start / 1e9 if span.start else None
                turn.ended_at = span.end / 1e9 if span.end else None
                turn.error = span.error
                self.waiting[turn.agent].append(turn)
            elif span.name.startswith("autogen process "):
                self._process(span.attributes, span.start)

    def _turn(self, agent: str, id: str) -> Turn:
        turn = Turn(id, agent)
        for message in self.inbox.pop(agent, ()):
            if message in self.by_message:
                turn.hear(self.by_message[message].id, "explicit")
        self.turns.append(turn)
        return turn

    def _process(self, attributes: dict[str, Any], time: int) -> None:
        content = json_or_text(attributes.get("message"))
        if not isinstance(content, dict):
            return
        response = content.get("response")
        messages = content.get("messages") or []
        inner: list[Any] = []
        if isinstance(response, dict):
            messages = [response.get("chat_message")]
            given = response.get("inner_messages")
            inner = given if isinstance(given, list) else []
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict) and message.get("id"):
                self._message(message, inner, time)
                agent = _TEAM.sub("", str(attributes.get("recipient_agent_type") or ""))
                if message.get("source") != agent:
                    self.inbox[agent].append(str(message["id"]))

    def _message(self, message: dict[str, Any], inner: list[Any], time: int) -> None:
        key, agent = str(message["id"]), str(message.get("source") or "?")
        if key in self.by_message:
            return
        if self.waiting[agent]:
            turn = self.waiting[agent].pop(0)
        else:
            turn = self._turn(agent, key)
            turn.kind = "task" if agent == "user" else "agent"
            turn.started_at = turn.ended_at = time / 1e9 if time else None
        self.by_message[key] = turn
        turn.text = as_text(message.get("content")) if message.get("content") else ""
        turn.said = [Message(turn.text, "assistant", (key,))]
        events = [event for event in (*inner, message) if isinstance(event, dict)]
        turn.calls = _calls(events)
        turn.usage = total_usage(_usage(event.get("models_usage")) for event in events)


def _calls(events: list[dict[str, Any]]) -> list[Call]:
    results: dict[str, dict[str, Any]] = {}
    asked: dict[str, dict[str, Any]] = {}
    for event in events:
        content = event.get("content")
        for item in content if isinstance(content, list) else ():
            if not isinstance(item, dict):
                continue
            if item.get("call_id"):
                results[str(item["call_id"])] = item
            elif item.get("id") and "arguments" in item:
                asked[str(item["id"])] = item
    return [
        Call(
            key,
            str(item.get("name") or ""),
            as_json(item.get("arguments")),
            result=None if key not in results else as_json(results[key].get("content")),
            error=as_json(results[key].get("content")) if results.get(key, {}).get("is_error") else None,
        )
        for key, item in asked.items()
    ]


def _usage(tokens: Any) -> Usage | None:
    if not isinstance(tokens, dict):
        return None
    return Usage(
        tokens_in=whole(tokens.get("prompt_tokens")), tokens_out=whole(tokens.get("completion_tokens"))
    )
