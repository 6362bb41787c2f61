"""The receiver of OTLP over HTTP: ``POST /v1/traces``, in protobuf or JSON, plain or gzipped.

Conventions
-----------
* 200 is answered only after the store has said that all spans of the request are on the disk. Spans that had
  to be refused are counted in ``partial_success``, with the reason.
* What cannot be taken now is 429 (too much under way) or 503 (the store cannot write) with ``Retry-After``,
  and nothing of the request is kept; exporters send it again. Everything else that goes wrong is final.
* Memory is bounded: of a body no more is read than there is room for, and unpacking stops at the limit.

Sources
-------
1. OpenTelemetry Protocol Specification 1.9, OTLP/HTTP: responses, failures, throttling, JSON encoding.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from counterpoint.errors import CounterpointError
from counterpoint.protobuf import delimited, varint
from counterpoint.store import Store, StoreFull
from counterpoint.view.server.limits import Budget, Limits, Share, TooBusy, TooLarge
from counterpoint.view.server.responses import (
    JSON,
    PROTOBUF,
    Receive,
    Response,
    Scope,
    Send,
    content_type,
    header,
    reply,
    reply_unread,
    status,
)

if TYPE_CHECKING:
    from counterpoint.view.server.spans import Decoded

__all__ = ["Receiver"]

T = TypeVar("T")

_RETRY = (b"retry-after", b"1")
_CHUNK = 2**20
"""Most bytes that are unpacked at one time."""
_SLICE = 2**16
"""Most bytes that are given to be unpacked at one time."""
_MEMBERS = 1_000
"""Most files of gzip in one body; exporters send one."""


class Refusal(Exception):
    """The request ends here, with an error for its sender."""

    def __init__(self, code: int, text: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(text)
        self.code = code
        self.headers = headers


class Gone(Exception):
    """The sender hung up before its request was whole."""


class Receiver:
    """An ASGI application for everything under ``/v1/``."""

    def __init__(self, store: Store, limits: Limits, *, keep_secrets: bool = False) -> None:
        from counterpoint.view.server.spans import decode

        self._decode_spans = decode
        self._store = store
        self._limits = limits
        self._keep_secrets = keep_secrets
        self._budget = Budget(limits.flight_bytes)
        self._turns = asyncio.Semaphore(limits.requests)
        self._threads = asyncio.Semaphore(limits.threads)
        self._waiting = 0
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="receiver")

    def close(self) -> None:
        """Wait for what is under way, and end the threads."""
        self._pool.shutdown(cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        body = _Body(receive)
        try:
            self._check(scope)
            response = await self._take(scope, body)
        except Refusal as refused:
            response = status(scope, refused.code, str(refused), *refused.headers)
        except Gone:
            return
        if body.read:
            await reply(send, response)
        else:
            await reply_unread(receive, send, response)

    def _check(self, scope: Scope) -> None:
        """Everything that the head of a request tells."""
        path = scope["path"]
        if path != "/v1/traces":
            raise Refusal(404, f"only traces are taken here, at /v1/traces; nothing at {path[:100]!r}")
        if scope["method"] != "POST":
            raise Refusal(405, "traces are sent here by POST", (b"allow", b"POST"))
        if content_type(scope) not in (PROTOBUF, JSON):
            raise Refusal(415, f"content type {content_type(scope)[:100]!r} is neither {PROTOBUF} nor {JSON}")
        if _encoding(scope) not in ("", "identity", "gzip"):
            raise Refusal(415, f"content encoding {_encoding(scope)[:100]!r} is neither gzip nor identity")
        length = header(scope, b"content-length")
        if length.isdecimal() and int(length) > self._limits.body_bytes:
            most = self._limits.body_bytes
            raise Refusal(413, f"a body of {length} bytes, and {most} bytes are the limit: send fewer spans")

    async def _take(self, scope: Scope, body: _Body) -> Response:
        """Read, decode and store, all of it within the bounds on what is under way."""
        until = time.monotonic() + self._limits.wait_s
        await self._turn(until)
        try:
            with Share(self._budget) as share:
                data = await body.all(share, self._limits)
                decoded = await self._in_thread(self._soon(until), self._decode, scope, data, share)
                del data
                await self._keep(decoded, self._soon(until))
                return _accepted(scope, decoded)
        except TooBusy as error:
            raise Refusal(429, f"{error}: try again", _RETRY) from None
        except TooLarge as error:
            raise Refusal(413, str(error)) from None
        except ValueError as error:
            raise Refusal(400, f"no request of OTLP: {error}") from None
        finally:
            self._turns.release()

    def _soon(self, until: float) -> float:
        """That moment, or half of what a request waits for from now on, whichever is later."""
        return max(until, time.monotonic() + self._limits.wait_s / 2)

    async def _turn(self, until: float) -> None:
        """Wait for one of the turns; a body that waits stays with its sender."""
        if self._turns.locked() and self._waiting >= self._limits.queue:
            raise Refusal(429, "too many requests at one time: try again", _RETRY)
        self._waiting += 1
        try:
            async with asyncio.timeout(until - time.monotonic()):
                await self._turns.acquire()
        except TimeoutError:
            raise Refusal(429, "too many requests at one time: try again", _RETRY) from None
        finally:
            self._waiting -= 1

    def _decode(self, scope: Scope, data: bytes, share: Share) -> Decoded:
        if _encoding(scope) == "gzip":
            data = unpack(data, share, self._limits.body_bytes)
        return self._decode_spans(
            data, json=content_type(scope) == JSON, limits=self._limits, keep_secrets=self._keep_secrets
        )

    async def _keep(self, decoded: Decoded, until: float) -> None:
        """Until the spans are on the disk; where the store is full, try again for a while."""
        while decoded.spans:
            try:
                await self._in_thread(until, self._add, decoded, until)
                return
            except StoreFull as error:
                if time.monotonic() + 0.1 > until:
                    raise TooBusy(str(error)) from None
                await asyncio.sleep(0.05)
            except (sqlite3.Error, OSError, CounterpointError) as error:
                raise Refusal(503, f"the spans could not be stored: {error}", _RETRY) from None

    def _add(self, decoded: Decoded, until: float) -> None:
        self._store.add_spans(decoded.spans, wait_s=max(until - time.monotonic(), 0.0))

    async def _in_thread(self, until: float, call: Callable[..., T], *arguments: Any) -> T:
        """``call`` in a thread of the pool. Raises TooBusy where none is free in time."""
        try:
            async with asyncio.timeout(until - time.monotonic()):
                await self._threads.acquire()
        except TimeoutError:
            raise TooBusy("too many requests at one time") from None
        work = asyncio.get_running_loop().run_in_executor(self._pool, call, *arguments)
        work.add_done_callback(lambda _: self._threads.release())
        try:
            return await work
        finally:
            del work  # else an error, which holds all that was unpacked, holds itself


class _Body:
    """The body of one request, as it arrives."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.read = False
        """Was all of it read?"""

    async def all(self, share: Share, limits: Limits) -> bytes:
        """Raises Refusal where it is too long or too slow, TooBusy where there is no room, and Gone."""
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(limits.body_s):
                while not self.read:
                    message = await self._receive()
                    if message["type"] != "http.request":
                        self.read = True
                        raise Gone
                    part = message.get("body", b"")
                    self.read = not message.get("more_body", False)
                    share.take(len(part))
                    if share.held > limits.body_bytes:
                        raise TooLarge(f"a body of more than {limits.body_bytes} bytes: send fewer spans")
                    parts.append(part)
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive within {limits.body_s:g} seconds") from None
        return b"".join(parts)


def unpack(data: bytes, share: Share, most: int) -> bytes:
    """Gzipped bytes unpacked, step by step. Raises ValueError, TooLarge, and TooBusy for want of room."""
    parts: list[bytes] = []
    size = at = 0
    members, unpacker = 1, zlib.decompressobj(wbits=31)
    left = b""
    try:
        while left or at < len(data):
            if not left:  # what a step leaves over is copied: so it is never more than a slice
                left, at = data[at : at + _SLICE], at + _SLICE
            if unpacker.eof:
                members, unpacker = members + 1, zlib.decompressobj(wbits=31)
                if members > _MEMBERS:
                    raise ValueError(f"the body is more than {_MEMBERS} files of gzip, one after the other")
            part = unpacker.decompress(left, _CHUNK)
            share.take(len(part))
            size += len(part)
            if size > most:
                raise TooLarge(f"a body that unpacks to more than {most} bytes: send fewer spans")
            parts.append(part)
            left = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        if data and not unpacker.eof:
            raise ValueError("the gzipped body is cut off")
    except zlib.error as error:
        raise ValueError(f"the body is not gzip ({error})") from None
    return b"".join(parts)


def _encoding(scope: Scope) -> str:
    return header(scope, b"content-encoding").strip().lower()


def _accepted(scope: Scope, decoded: Decoded) -> Response:
    """``ExportTraceServiceResponse``, empty where everything was taken."""
    reasons = "; ".join(decoded.reasons)
    if content_type(scope) == JSON:
        told = {"rejectedSpans": str(decoded.rejected), "errorMessage": reasons}
        return Response(200, json.dumps({"partialSuccess": told} if decoded.rejected else {}).encode(), JSON)
    body = b""
    if decoded.rejected:
        body = delimited(1, b"\x08" + varint(decoded.rejected) + delimited(2, reasons.encode()))
    return Response(200, body, PROTOBUF)
