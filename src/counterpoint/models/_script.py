"""What a scripted model says next: turns, tool calls and faults, from a list or a function."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from counterpoint.contracts import Reply
from counterpoint.errors import ModelError, UsageError

__all__ = ["Fault", "Line", "Message", "Replies", "Script", "ToolCall", "Turn", "estimate_tokens", "text_of"]

Message: TypeAlias = Mapping[str, Any]
"""A chat message as the API has it: ``role``, ``content``, perhaps ``tool_calls``."""


@dataclass(frozen=True)
class ToolCall:
    """The wish to have a tool called."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """An object, or JSON text that is sent as it is (broken JSON too)."""
    id: str = ""
    """Empty: numbered by the server."""


@dataclass(frozen=True)
class Turn:
    """Everything that one answer can hold."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    refusal: str | None = None
    tokens_in: int | None = None
    """Reported as prompt tokens, however wrong; None: estimated from the messages."""
    tokens_out: int | None = None
    model: str = ""
    """Empty: the model that was asked for."""
    finish_reason: str = ""
    """Empty: ``tool_calls`` or ``stop``."""
    tokens_cached: int | None = None
    """Of the prompt tokens; sent only where it is given, as are the next two."""
    tokens_reasoning: int | None = None
    """Of the completion tokens."""
    cost_usd: float | None = None
    """Sent as OpenRouter sends it."""


@dataclass(frozen=True)
class Fault:
    """An answer that goes wrong: on the server as said here, in process as a ModelError."""

    status: int = 200
    """HTTP status; from 400 on the answer is an error object."""
    retry_after_s: float | None = None
    """Sent as ``Retry-After``."""
    stall_s: float = 0.0
    """Silence before the answer."""
    body: str | None = None
    """Sent in place of the answer."""
    drop_after: int | None = None
    """Bytes of the body after which the connection is cut; 0: before the first header."""
    reply: str | Turn = ""
    """The answer that is spoiled, or comes late."""

    @classmethod
    def rate_limited(cls, retry_after_s: float = 1.0) -> Fault:
        """HTTP 429 with ``Retry-After``."""
        return cls(status=429, retry_after_s=retry_after_s)

    @classmethod
    def server_error(cls, status: int = 500) -> Fault:
        """HTTP 500, or another status."""
        return cls(status=status)

    @classmethod
    def dropped(cls, after: int = 40, reply: str | Turn = "This text never arrives in full.") -> Fault:
        """A connection that ends ``after`` bytes of the body."""
        return cls(drop_after=after, reply=reply)

    @classmethod
    def garbage(cls, body: str = '{"choices": [{"mess') -> Fault:
        """HTTP 200 with a body that is no JSON."""
        return cls(body=body)

    @classmethod
    def empty_choices(cls) -> Fault:
        """A well-formed answer with nothing in it."""
        return cls(body='{"id": "empty", "object": "chat.completion", "created": 0, "choices": []}')

    @classmethod
    def stall(cls, seconds: float, reply: str | Turn = "Late.") -> Fault:
        """An answer after ``seconds`` of silence."""
        return cls(stall_s=seconds, reply=reply)


Line: TypeAlias = str | Reply | Turn | ToolCall | Fault | Sequence[ToolCall]
"""One scripted answer, in its shortest form."""
Replies: TypeAlias = Line | Iterable[Line] | Callable[[list[Message]], Line]
"""One answer for ever; or answers in order; or a function of the messages."""


class Script:
    """Hands out the next answer; safe to ask from many threads."""

    def __init__(self, replies: Replies) -> None:
        self._lock = threading.Lock()
        self._handed_out = 0
        self._speak: Callable[[list[Message]], Line]
        if callable(replies):
            self._speak = replies
        elif isinstance(replies, str | Reply | Turn | ToolCall | Fault):
            self._speak = lambda _: replies
        else:
            lines: Iterator[Line] = iter(replies)
            self._speak = lambda _: self._next(lines)

    def answer(self, messages: Sequence[Message]) -> Turn | Fault:
        """The answer to ``messages``; a ModelError when the script is at its end."""
        return _turn(self._speak(list(messages)))

    def _next(self, lines: Iterator[Line]) -> Line:
        with self._lock:
            for line in lines:
                self._handed_out += 1
                return line
        raise ModelError(
            f"the script is at its end: it has {self._handed_out} replies, and one more was asked for"
        )


def _turn(line: Line) -> Turn | Fault:
    if isinstance(line, Turn | Fault):
        return line
    if isinstance(line, str):
        return Turn(line)
    if isinstance(line, ToolCall):
        return Turn(calls=(line,))
    if isinstance(line, Reply):
        return Turn(
            line.text,
            tokens_in=line.tokens_in,
            tokens_out=line.tokens_out,
            model=line.model,
            finish_reason=line.finish_reason,
            tokens_cached=line.tokens_cached,
            tokens_reasoning=line.tokens_reasoning,
            cost_usd=line.cost_usd,
        )
    if isinstance(line, Sequence):
        calls = tuple(call for call in line if isinstance(call, ToolCall))
        if calls and len(calls) == len(line):
            return Turn(calls=calls)
    raise UsageError(
        "a scripted reply is a str, Reply, Turn, ToolCall, list of ToolCalls or Fault, "
        f"not {type(line).__name__}"
    )


def text_of(content: Any) -> str:
    """The text of a message's ``content``: a string, or a list of parts of which some have ``text``."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and "text" in part)


def estimate_tokens(*texts: str) -> int:
    """Words and punctuation marks: no tokenizer of any model, but the same on every machine.

    >>> estimate_tokens("The answer is 7.", "Why?")
    7
    """
    return sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in texts)
