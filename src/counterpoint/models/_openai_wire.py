"""The JSON of an OpenAI-compatible endpoint: what a request asks, and an answer whole or in pieces.

Chat completions (``/v1/chat/completions``) and, in their basic form, responses (``/v1/responses``): text,
refusals and function calls. Conversation state kept by the server, reasoning and built-in tools are not.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.errors import UsageError
from counterpoint.models._script import Message, ToolCall, Turn, estimate_tokens, text_of

__all__ = ["Answer", "chat_messages", "embeddings", "response_messages"]

Json = dict[str, Any]

_RESPONSE_CONSTANTS: Json = {
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


@dataclass(frozen=True)
class Answer:
    """One turn as the answer to one request."""

    turn: Turn
    number: int
    """Of the request; ids are made of it, so that the same script gives the same bytes."""
    asked_model: str
    messages: Sequence[Message]

    @property
    def tokens_in(self) -> int:
        """As scripted, else estimated from the text of the messages."""
        if self.turn.tokens_in is not None:
            return self.turn.tokens_in
        return estimate_tokens(*(text_of(message.get("content")) for message in self.messages))

    @property
    def tokens_out(self) -> int:
        """As scripted, else estimated from text, refusal and tool calls."""
        if self.turn.tokens_out is not None:
            return self.turn.tokens_out
        calls = (part for call in self.turn.calls for part in (call.name, _arguments(call)))
        return estimate_tokens(self.turn.text, self.turn.refusal or "", *calls)

    def chat(self) -> Json:
        """A ``chat.completion``."""
        message: Json = {"role": "assistant", "content": self._content, "refusal": self.turn.refusal}
        if self.turn.calls:
            message["tool_calls"] = [self._chat_call(i) for i in range(len(self.turn.calls))]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish_reason}
        return {**self._chat_head("chat.completion"), "choices": [choice], "usage": self._chat_usage()}

    def chat_stream(self, include_usage: bool) -> Iterator[str]:
        """The same as server-sent events: text word by word, arguments in two halves."""
        head = self._chat_head("chat.completion.chunk")

        def event(delta: Json, finish_reason: str | None = None) -> str:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
            usage: Json = {"usage": None} if include_usage else {}
            return _event({**head, "choices": [choice], **usage})

        yield event({"role": "assistant", "content": self._content and ""})
        for piece in _pieces(self.turn.text):
            yield event({"content": piece})
        for piece in _pieces(self.turn.refusal or ""):
            yield event({"refusal": piece})
        for index in range(len(self.turn.calls)):
            call = self._chat_call(index)
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            yield event(
                {"tool_calls": [{**call, "index": index, "function": {"name": name, "arguments": ""}}]}
            )
            for piece in _halves(arguments):
                yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield event({}, self._finish_reason)
        if include_usage:
            yield _event({**head, "choices": [], "usage": self._chat_usage()})
        yield "data: [DONE]\n\n"

    def response(self, status: str = "completed") -> Json:
        """A ``response`` object; one that is still ``in_progress`` has no output and no usage."""
        done = status == "completed"
        return {
            "id": f"resp_{self.number}",
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": self.turn.model or self.asked_model,
            "output": self._output() if done else [],
            "usage": self._response_usage() if done else None,
            **_RESPONSE_CONSTANTS,
        }

    def response_stream(self) -> Iterator[str]:
        """The same as server-sent events."""
        for sequence, (kind, fields) in enumerate(self._response_events()):
            yield f"event: {kind}\n" + _event({"type": kind, "sequence_number": sequence, **fields})

    def _response_events(self) -> Iterator[tuple[str, Json]]:
        yield "response.created", {"response": self.response("in_progress")}
        for index, item in enumerate(self._output()):
            place: Json = {"output_index": index}
            started: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
            yield (
                "response.output_item.added",
                {**place, "item": {**item, "status": "in_progress", **started}},
            )
            yield from self._item_events(item, {**place, "item_id": item["id"]})
            yield "response.output_item.done", {**place, "item": item}
        yield "response.completed", {"response": self.response()}

    def _item_events(self, item: Json, place: Json) -> Iterator[tuple[str, Json]]:
        if item["type"] == "function_call":
            kind = "response.function_call_arguments"
            for piece in _halves(item["arguments"]):
                yield f"{kind}.delta", {**place, "delta": piece}
            yield f"{kind}.done", {**place, "name": item["name"], "arguments": item["arguments"]}
            return
        part = item["content"][0]
        field = "refusal" if part["type"] == "refusal" else "text"
        kind = "response.refusal" if field == "refusal" else "response.output_text"
        place = {**place, "content_index": 0}
        yield "response.content_part.added", {**place, "part": {**part, field: ""}}
        for piece in _pieces(part[field]):
            yield f"{kind}.delta", {**place, "delta": piece, "logprobs": []}
        yield f"{kind}.done", {**place, field: part[field], "logprobs": []}
        yield "response.content_part.done", {**place, "part": part}

    @property
    def _content(self) -> str | None:
        return None if not self.turn.text and (self.turn.calls or self.turn.refusal) else self.turn.text

    @property
    def _finish_reason(self) -> str:
        return self.turn.finish_reason or ("tool_calls" if self.turn.calls else "stop")

    def _call_id(self, index: int) -> str:
        return self.turn.calls[index].id or f"call_{self.number}_{index + 1}"

    def _chat_head(self, kind: str) -> Json:
        model = self.turn.model or self.asked_model
        return {"id": f"chatcmpl-{self.number}", "object": kind, "created": 0, "model": model}

    def _chat_call(self, index: int) -> Json:
        call = self.turn.calls[index]
        function = {"name": call.name, "arguments": _arguments(call)}
        return {"id": self._call_id(index), "type": "function", "function": function}

    def _chat_usage(self) -> Json:
        turn, total = self.turn, self.tokens_in + self.tokens_out
        usage: Json = {"prompt_tokens": self.tokens_in, "completion_tokens": self.tokens_out}
        usage["total_tokens"] = total
        if turn.tokens_cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": turn.tokens_cached}
        if turn.tokens_reasoning is not None:
            usage["completion_tokens_details"] = {"reasoning_tokens": turn.tokens_reasoning}
        return usage if turn.cost_usd is None else {**usage, "cost": turn.cost_usd}

    def _response_usage(self) -> Json:
        return {
            "input_tokens": self.tokens_in,
            "input_tokens_details": {"cached_tokens": self.turn.tokens_cached or 0},
            "output_tokens": self.tokens_out,
            "output_tokens_details": {"reasoning_tokens": self.turn.tokens_reasoning or 0},
            "total_tokens": self.tokens_in + self.tokens_out,
        }

    def _output(self) -> list[Json]:
        items: list[Json] = []
        if self._content is not None or self.turn.refusal:
            part: Json = {"type": "output_text", "text": self.turn.text, "annotations": [], "logprobs": []}
            if self.turn.refusal:
                part = {"type": "refusal", "refusal": self.turn.refusal}
            message = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
            items.append({"id": f"msg_{self.number}", **message})
        for index, call in enumerate(self.turn.calls):
            ids = {"id": f"fc_{self.number}_{index + 1}", "call_id": self._call_id(index)}
            function = {"name": call.name, "arguments": _arguments(call)}
            items.append({"type": "function_call", "status": "completed", **ids, **function})
        return items


def chat_messages(body: Mapping[str, Any]) -> list[Message]:
    """The messages of a chat completion request. Raises UsageError where there are none."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise UsageError('the request has no "messages" that is a list of objects')
    if body.get("n") not in (None, 1):
        raise UsageError(f'"n": {body["n"]!r} is not served here: ask once for each choice')
    return list(messages)


def response_messages(body: Mapping[str, Any]) -> list[Message]:
    """The input of a responses request as chat messages. Raises UsageError where there is none."""
    if body.get("previous_response_id"):
        raise UsageError('"previous_response_id" is not served here: send the whole input')
    given = body.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise UsageError('the request has no "input" that is a text or a list of objects')
    instructions = body.get("instructions")
    messages: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
    for item in given:
        kind = item.get("type", "message")
        if kind == "message":
            messages.append({"role": item.get("role", "user"), "content": text_of(item.get("content"))})
        elif kind == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "function_call_output":
            output = text_of(item.get("output"))
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": output})
    return messages


def embeddings(body: Mapping[str, Any], model: str) -> Json:
    """Vectors of the test embedder for an embeddings request, as numbers or in base64 as asked."""
    from counterpoint.models.embed import embedder

    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise UsageError('the request has no "input" that is a text or a list of texts')
    packed = body.get("encoding_format") == "base64"
    data = []
    for index, row in enumerate(embedder("hashing")(texts).tolist()):
        numbers = base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() if packed else row
        data.append({"object": "embedding", "index": index, "embedding": numbers})
    tokens = estimate_tokens(*texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def _event(data: Json) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _arguments(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))


def _pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*|^\s+", text)


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [half for half in (text[:middle], text[middle:]) if half]
