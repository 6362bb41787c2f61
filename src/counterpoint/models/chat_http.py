"""A chat model behind any OpenAI-compatible endpoint: OpenAI, vLLM, Ollama, llama.cpp, OpenRouter, ...

    model = ChatHTTP("llama3.1:8b", base_url="http://localhost:11434/v1", temperature=0.0, seed=1)
    reply = model([{"role": "user", "content": "What is 3 + 4?"}])

Conventions
-----------
* What was set is sent; what is None is left out, so that the server's default holds.
* The key comes from an environment variable, and is in no field, repr, error or log of ours, nor in a reply
  that quotes it.
* Any number of threads may call one model; they share its connections.

What counts
-----------
* Tried again, after waits that double and jitter and are never shorter than ``Retry-After``: HTTP 408, 409,
  429 and 5xx; refused, broken and silent connections; answers that are no chat completion.
  Not tried again: other 4xx.
* A ModelUnavailable, for a run to stop: HTTP 401, 402, an exhausted quota, a wait of more than
  `LONGEST_WAIT_S`.
* A RequestRefused, which is about one prompt: HTTP 400, 413, 422, and a 403 that names reasons of moderation.
  Any other 403 is an AccessRefused: a firewall's about one prompt, or a key's about all.
* A refusal is a reply with finish reason ``refusal``; a reply cut short says so by its finish reason, too.
* Tokens (cached and reasoning ones too) and cost are those of the attempt that succeeded, as the server says;
  what it does not say, and numbers that cannot be, are None.

Source: ours.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from counterpoint.contracts import Reply
from counterpoint.errors import AccessRefused, ModelError, ModelUnavailable, RequestRefused, UsageError
from counterpoint.json_text import parse_json
from counterpoint.models._bounded import Unbounded, bounded_client
from counterpoint.models._encodable import encodable
from counterpoint.models._keys import KEY_VARIABLE, key_forms, named_key
from counterpoint.secrets import mask

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

__all__ = ["LONGEST_WAIT_S", "ChatHTTP"]

LONGEST_WAIT_S = 120.0
"""A server that asks for more is taken to be out of service."""

_FIRST_WAIT_S = 0.5
_LONGEST_BACKOFF_S = 30.0
_LONGEST_QUOTE = 300
_MOST_TOKENS = 10**12
"""No call took more; a larger number is no count."""
_SHORTEST_KEY = 6
"""What stands in for a key ("none", "x") may also be a word of the message."""
_OURS = frozenset({"messages", "model", "n", "stream"})
_AGAIN = frozenset({408, 409, 429})
_CLOSED = frozenset({401, 402})
_ONE_REQUEST = frozenset({400, 403, 413, 422})
_ASTRAY = frozenset({"TooManyRedirects", "UnsupportedProtocol"})
"""Errors of the HTTP library that openai brings, whichever that is."""


@dataclass
class ChatHTTP:
    """A chat model by its name at an endpoint; calling it asks once and waits for the whole answer.

    Raises ModelError where no key is set, or (on a call) where the endpoint gives no answer.
    """

    model: str
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = KEY_VARIABLE
    """The variable that holds the key. Unset, the default is an error at OpenAI's own endpoint only; another
    one everywhere."""
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the request's body: ``{"top_p": 0.9}``."""
    timeout_s: float = 60.0
    """Seconds after which an attempt is given up whose answer has not come in whole."""
    retries: int = 5
    """Attempts after the first."""
    wait: Callable[[float], object] = field(default=time.sleep, repr=False, compare=False)
    """How a pause is made; tests record it."""
    _client: OpenAI = field(init=False, repr=False, compare=False)
    _key: str = field(init=False, repr=False, compare=False)
    _key_forms: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"base URL {mask(self.base_url)!r} is no http(s) address of an endpoint")
        if parts.username or parts.password or parts.query:
            raise UsageError(
                f"the base URL of {parts.hostname} holds a login or a query: "
                f"put the key into the environment variable {self.api_key_env}"
            )
        if not 0 < self.timeout_s < float("inf"):
            raise UsageError(f"a timeout is a number of seconds above 0, not {self.timeout_s!r}")
        if wrong := sorted(_OURS & set(self.extra)):
            raise UsageError(f"extra settings of a chat model cannot be {', '.join(wrong)}: those are fixed")
        self._key = named_key(self.api_key_env)
        if not self._key and parts.hostname == "api.openai.com":
            raise ModelError(f"model {self.model!r}: no key: set {self.api_key_env}, or name a base URL")
        self._key_forms = key_forms(self._key) if len(self._key) >= _SHORTEST_KEY else None
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelError(f"model {self.model!r}: {self.api_key_env} holds characters that no key has")
        self._client = bounded_client(self.base_url, self._key or "none", self.timeout_s)

    @property
    def settings(self) -> dict[str, Any]:
        """All that a reply depends on besides the messages, as plain JSON: what caches and configs keep."""
        asked = {"temperature": self.temperature, "max_tokens": self.max_tokens, "seed": self.seed}
        sent = {name: value for name, value in asked.items() if value is not None}
        return {"model": self.model, "base_url": self.base_url, **sent, **self.extra}

    def __call__(self, messages: Sequence[Mapping[str, Any]], /) -> Reply:
        """The reply; a ModelError that says what went wrong in the last attempt where there is none."""
        attempt = 0
        while isinstance(outcome := self._attempt(messages), _Failure):
            if not outcome.again or attempt >= self.retries:
                tried = f" (tried {attempt + 1} times)" if attempt else ""
                where = urlsplit(self.base_url).netloc
                raise outcome.kind(f"model {self.model!r} at {where}: {outcome.what}{tried}")
            self.wait(outcome.pause(attempt))
            attempt += 1
        return outcome

    def close(self) -> None:
        """End the connections; the model must not be called again."""
        self._client.close()

    def _attempt(self, messages: Sequence[Mapping[str, Any]]) -> Reply | _Failure:
        import openai

        body = {name: value for name, value in self.settings.items() if name != "base_url"}
        try:
            # Raw, since anything may come back; settings go by `extra_body`, which is sent as it is.
            response = self._client.chat.completions.with_raw_response.create(
                model=self.model, messages=cast(Any, encodable(list(messages))), extra_body=body
            )
        except openai.APIStatusError as error:
            return self._refused(error)
        except openai.APITimeoutError:
            return _Failure(f"no whole answer within {self.timeout_s:g} s")
        except (openai.OpenAIError, Unbounded) as error:
            cause = error.__cause__ or error
            if isinstance(cause, Unbounded):
                return _Failure(str(cause), cause.again)
            if type(cause).__name__ in _ASTRAY:
                return _Failure(f"it redirects to where no answer is: {self._quote(cause)}", again=False)
            return _Failure(f"the connection failed: {self._quote(cause)}")
        answer = _read(response.content)
        if isinstance(answer, Reply):
            said = (answer.text, answer.model, answer.finish_reason)
            text, model, reason = (self._without_key(one) for one in said)
            return replace(answer, text=text, model=model, finish_reason=reason)
        return _Failure(f"{answer}: {self._quote(response.text)}{self._hint(response.headers)}")

    def _refused(self, error: APIStatusError) -> _Failure:
        status, asked_s = error.status_code, _retry_after(error.response.headers)
        body = error.body if isinstance(error.body, dict) else {}
        what = f"HTTP {status}: {self._quote(body.get('message') or error.message)}"
        if status == 404:
            what += self._hint(error.response.headers)
        if asked_s is not None and asked_s > LONGEST_WAIT_S:
            return _Failure(f"{what}; it asks to wait {asked_s:.0f} s", again=False, kind=ModelUnavailable)
        details = body.get("metadata")
        moderated = isinstance(details, dict) and "reasons" in details  # as OpenRouter says it
        kind: type[ModelError] = ModelError
        if error.code == "insufficient_quota" or status in _CLOSED:
            kind = ModelUnavailable
        elif status in _ONE_REQUEST:
            kind = AccessRefused if status == 403 and not moderated else RequestRefused
        again = kind is ModelError and (status in _AGAIN or status >= 500)
        return _Failure(what, again, asked_s, kind)

    def _quote(self, told: object) -> str:
        """What somebody else said, on one line, short, and without the key."""
        text = mask(self._without_key(" ".join(str(told).split())))
        return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."

    def _hint(self, headers: Mapping[str, str]) -> str:
        """What may be wrong where a page for people comes back."""
        odd = "html" in headers.get("content-type", "") and not self.base_url.rstrip("/").endswith("/v1")
        return "; does the base URL end in /v1?" if odd else ""

    def _without_key(self, text: str) -> str:
        return self._key_forms.sub("[secret:key]", text) if self._key_forms else text


@dataclass(frozen=True)
class _Failure:
    """An attempt that gave no reply."""

    what: str
    again: bool = True
    """Another attempt may go better."""
    asked_s: float | None = None
    """How long the server asks to wait."""
    kind: type[ModelError] = ModelError
    """The error that it is in the end: about this request, or about further calls, too."""

    def pause(self, attempt: int) -> float:
        """Seconds before the next attempt."""
        backoff = min(_LONGEST_BACKOFF_S, _FIRST_WAIT_S * 2.0**attempt)
        if self.asked_s is None:
            return backoff * random.uniform(0.5, 1.0)
        # Who was turned away together comes back apart.
        return self.asked_s + random.uniform(0.0, _FIRST_WAIT_S)


def _read(content: bytes) -> Reply | str:
    """The reply in the body of a chat completion; else what is wrong with it."""
    try:
        answer, _ = parse_json(content)
    except ValueError:
        return "the answer is no JSON"
    answer = answer if isinstance(answer, dict) else {}
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    choice = choice if isinstance(choice, dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        return "the answer has no choices" if choices == [] else "the answer is no chat completion"
    refusal = message.get("refusal")
    usage = answer.get("usage")
    return Reply(
        text=_text(message.get("content")) or _text(refusal),
        model=_text(answer.get("model")),
        finish_reason="refusal" if refusal else _text(choice.get("finish_reason")),
        **_used(usage if isinstance(usage, dict) else {}),
    )


def _used(usage: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a reply: OpenAI's names, DeepSeek's for what was cached, OpenRouter's for the cost."""
    tokens_in, tokens_out = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    shown, said = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = shown.get("cached_tokens") if isinstance(shown, dict) else usage.get("prompt_cache_hit_tokens")
    reasoning = said.get("reasoning_tokens") if isinstance(said, dict) else None
    return {
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "tokens_cached": _count(cached, tokens_in),
        "tokens_reasoning": _count(reasoning, tokens_out),
        "cost_usd": _dollars(usage.get("cost")),
    }


def _text(value: Any) -> str:
    """A string as it is, a list of parts as its texts; an empty string for all else."""
    parts = value if isinstance(value, list) else [{"text": value}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _count(number: Any, whole: int | None = None) -> int | None:
    """A number of tokens, a part of ``whole`` where that is known; None for what cannot be one."""
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    return number if 0 <= number <= (_MOST_TOKENS if whole is None else whole) else None


def _dollars(amount: Any) -> float | None:
    """What was charged; None for what cannot be that."""
    if not isinstance(amount, int | float) or isinstance(amount, bool):
        return None
    try:
        dollars = float(amount)
    except OverflowError:  # JSON has whole numbers of any length
        return None
    return dollars if math.isfinite(dollars) and dollars >= 0 else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: given in milliseconds, in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
