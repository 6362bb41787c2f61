"""A model that says what it was told to say: in process, and behind a real HTTP server on loopback.

    model = Scripted(["Analyze: 3 + 4.", "The answer is 7."])            # in order; then a ModelError
    model = Scripted(lambda messages: "7" if len(messages) > 2 else "?")  # a function of the messages

    with scripted_server(["7", ToolCall("add", {"a": 3, "b": 4}), Fault.rate_limited()]) as server:
        client = OpenAI(base_url=server.base_url, api_key="any")

Conventions
-----------
A reply is a text, a `Reply`, a `Turn` (text, tool calls, refusal, usage, all at once), a `ToolCall` or a list
of them, or a `Fault`. One reply alone is given for ever, an iterable once. Concurrent requests take replies
in the order in which they come in; where it matters who gets which, use a function.

The server speaks chat completions and responses (plain and as server-sent events), embeddings (of the test
embedder) and models. Bad requests and ends of scripts are HTTP 400, which clients do not retry.

What counts
-----------
Where a reply does not say how many tokens it took, words and punctuation marks are counted. The server's
totals count a request once its whole answer has been written to a connection that is still open.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType

from counterpoint.contracts import Reply
from counterpoint.errors import ModelError, UsageError
from counterpoint.models._openai_wire import Answer
from counterpoint.models._script import Fault, Message, Replies, Script, ToolCall, Turn
from counterpoint.models._scripted_http import Endpoint, Log, LoggedRequest

__all__ = [
    "Fault",
    "LoggedRequest",
    "Scripted",
    "ScriptedServer",
    "ToolCall",
    "Turn",
    "scripted_server",
]


class Scripted:
    """A chat model without a model.

    >>> model = Scripted(["The answer is 7."])
    >>> model([{"role": "user", "content": "What is 3 + 4?"}]).text
    'The answer is 7.'
    """

    def __init__(self, replies: Replies) -> None:
        self._script = Script(replies)
        self.requests: list[list[Message]] = []
        """The messages of every call so far."""

    def __call__(self, messages: Sequence[Message], /) -> Reply:
        """The next reply. Raises ModelError for a `Fault` and at the script's end."""
        self.requests.append(list(messages))
        turn = self._script.answer(messages)
        if isinstance(turn, Fault):
            raise ModelError(f"scripted fault: {turn}")
        if turn.calls:
            raise UsageError(
                "a tool call was scripted, and a chat model has no way to say one: use the server"
            )
        answer = Answer(turn, len(self.requests), "scripted", messages)
        return Reply(
            text=turn.text or turn.refusal or "",
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            model=turn.model or "scripted",
            finish_reason=turn.finish_reason or "stop",
            tokens_cached=turn.tokens_cached,
            tokens_reasoning=turn.tokens_reasoning,
            cost_usd=turn.cost_usd,
        )


class ScriptedServer:
    """An OpenAI-compatible endpoint on loopback, up until `close` or the end of its ``with``."""

    def __init__(
        self, replies: Replies, *, port: int = 0, model: str = "scripted", latency_s: float = 0.0
    ) -> None:
        self._log = Log()
        self._http = Endpoint(port, Script(replies), self._log, model, latency_s)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.02,), name="scripted-server", daemon=True
        )
        self._thread.start()

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its ``base_url``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def requests(self) -> list[LoggedRequest]:
        """Every request so far, in the order of their coming in."""
        with self._log.lock:
            return list(self._log.requests)

    @property
    def errors(self) -> list[str]:
        """What went wrong in the script or its function, one line each."""
        return list(self._log.errors)

    @property
    def tokens_in(self) -> int:
        """Prompt tokens of all complete answers."""
        return sum(request.tokens_in for request in self.requests if request.complete)

    @property
    def tokens_out(self) -> int:
        """Completion tokens of all complete answers."""
        return sum(request.tokens_out for request in self.requests if request.complete)

    @property
    def peak(self) -> int:
        """The largest number of requests that were open at once."""
        return self._log.peak

    def close(self) -> None:
        """End all connections, stalled ones too; closing twice is harmless."""
        if self._thread.is_alive():
            self._http.closing.set()
            self._http.shutdown()
            self._thread.join()
            self._http.end_connections()
            self._http.server_close()

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def scripted_server(
    replies: Replies, *, port: int = 0, model: str = "scripted", latency_s: float = 0.0
) -> ScriptedServer:
    """A real HTTP server on loopback that answers as scripted; use it in a ``with``.

    Parameters
    ----------
    replies
        As for `Scripted`; tool calls and faults are acted out.
    port
        0: any free one; see ``server.base_url``.
    model
        The name that ``/v1/models`` lists. Requests may ask for any model.
    latency_s
        Seconds before each answer, so that concurrent requests overlap.

    >>> import json
    >>> from urllib.request import Request, urlopen
    >>> with scripted_server("7") as server:
    ...     question = b'{"messages": [{"role": "user", "content": "3 + 4?"}]}'
    ...     with urlopen(Request(server.base_url + "/chat/completions", question)) as response:
    ...         json.load(response)["choices"][0]["message"]["content"]
    '7'
    >>> server.tokens_in, server.tokens_out
    (4, 1)
    """
    return ScriptedServer(replies, port=port, model=model, latency_s=latency_s)
