"""What the receiver and the guard answer by themselves, without a framework in between.

Conventions
-----------
Under ``/v1/`` an error is a ``google.rpc.Status`` in the encoding of the request, as the OTLP specification
wants it; everywhere else it is one line of plain text. Both say what was found and what to do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from counterpoint.protobuf import delimited, varint

__all__ = [
    "JSON",
    "PROTOBUF",
    "Application",
    "Message",
    "Receive",
    "Response",
    "Scope",
    "Send",
    "content_type",
    "header",
    "reply",
    "reply_unread",
    "status",
]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


PROTOBUF = "application/x-protobuf"
JSON = "application/json"

_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 408: 4, 413: 8, 415: 3, 421: 7, 429: 8, 503: 14}
"""HTTP status to the canonical code of google.rpc.Code that comes nearest."""

LINGER_BYTES = 64 * 2**20
LINGER_S = 10.0
"""How much of a body that nobody wants is read away, so that its sender gets to read the answer."""


class Response(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes
    type: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


def header(scope: Scope, name: bytes) -> str:
    """The value of a request's header, decoded; empty where it was not sent. ``name`` is in lower case."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def content_type(scope: Scope) -> str:
    """The media type of the request's body, without parameters."""
    return header(scope, b"content-type").partition(";")[0].strip().lower()


def status(scope: Scope, code: int, text: str, *headers: tuple[bytes, bytes]) -> Response:
    """An error in the form that the sender of the request can read."""
    if not scope["path"].startswith("/v1/"):
        return Response(code, f"{text}\n".encode(), "text/plain; charset=utf-8", headers)
    number = _CODES.get(code, 2)
    if content_type(scope) == PROTOBUF:
        body = b"\x08" + varint(number) + delimited(2, text.encode("utf-8", "replace"))
        return Response(code, body, PROTOBUF, headers)
    return Response(code, json.dumps({"code": number, "message": text}).encode(), JSON, headers)


async def reply(send: Send, response: Response) -> None:
    """Send a whole answer."""
    await _start(send, response)
    await send({"type": "http.response.body", "body": response.body})


async def reply_unread(receive: Receive, send: Send, response: Response) -> None:
    """Send an answer to a request whose body was not read to its end, and end the connection.

    A connection closed on a sender who still writes is reset, and the answer lost with it. So the answer goes
    out first, and what comes meanwhile is read and dropped, for a while.
    """
    closing = response._replace(headers=(*response.headers, (b"connection", b"close")))
    await _start(send, closing)
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    left = LINGER_BYTES
    try:
        async with asyncio.timeout(LINGER_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b""})


async def _start(send: Send, response: Response) -> None:
    headers = [
        (b"content-type", response.type.encode("latin-1")),
        (b"content-length", str(len(response.body)).encode()),
        *response.headers,
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
