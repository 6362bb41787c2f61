"""Sockets, and the HTTP server on them: limits on what uvicorn leaves open, and a stop that loses nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from counterpoint.errors import UsageError
from counterpoint.view.server.responses import Application, Receive, Scope, Send, reply, status

__all__ = ["DEFAULT_PORT", "bind", "server"]

DEFAULT_PORT = 4318
"""The port of OTLP over HTTP, where exporters send to unless told otherwise."""
_TRIES = 20

HEAD_S = 10.0
"""How long the head of a request may take to arrive."""
HEAD_BYTES = 16 * 1024
KEEP_ALIVE_S = 75
STOP_S = 10
CONNECTIONS = 500


def bind(host: str, port: int | None) -> list[socket.socket]:
    """Sockets that listen on a host at one port; without a port, at the default one or the next free.

    Port 0 is any that is free at all addresses. Loopback is both of its addresses, since ``localhost`` may
    mean either. Raises UsageError.
    """
    names = ["127.0.0.1", "::1"] if host in ("127.0.0.1", "localhost") else [host]
    ports = range(DEFAULT_PORT, DEFAULT_PORT + _TRIES) if port is None else [port] * (1 if port else _TRIES)
    for candidate in ports:
        try:
            return _bind_all(names, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise UsageError(f"--host {host}: {error.strerror or error}") from None
    if port is not None:
        raise UsageError(
            f"--port {port}: is taken; leave --port out for the next free one, or choose another"
        )
    raise UsageError(
        f"the ports from {DEFAULT_PORT} to {DEFAULT_PORT + _TRIES - 1} are taken: choose a --port"
    )


def _bind_all(names: Sequence[str], port: int) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        for name in names:
            try:
                sockets.append(_bind_one(name, port))
            except OSError as error:
                if not sockets or error.errno == errno.EADDRINUSE:
                    raise
                continue  # a machine without IPv6
            port = sockets[0].getsockname()[1]
    except OSError:
        for one in sockets:
            one.close()
        raise
    return sockets


def _bind_one(name: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would share a port that is taken
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(256)
    except OSError:
        made.close()
        raise
    return made


def server(app: Any) -> uvicorn.Server:
    """What serves an application on sockets until a signal comes, and then answers what is under way.

    ``run(sockets)`` returns when that is done. ``app.state.stopping`` is set as soon as it is to stop.
    """
    config = uvicorn.Config(
        _until_stopped(app),
        http=_Protocol,
        ws="none",
        loop="asyncio",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
    return _Server(config, app)


def _until_stopped(app: Any) -> Application:
    """The application; what it could not answer within `STOP_S` is 503, and no fault of the server."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            if scope["type"] != "http" or not app.state.stopping.is_set():
                raise
            with suppress(Exception):  # half of an answer may be out already
                again = (b"retry-after", b"1")
                await reply(send, status(scope, 503, "the server stops: try again later", again))

    return answer


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Any) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """However often it is asked to stop: what was received whole is answered, within `STOP_S`."""
        self._app.state.stopping.set()
        self.should_exit = True


class _Protocol(H11Protocol):
    """Closes connections on which the head of a request does not arrive, which uvicorn keeps for ever.

    At a stop also those on which a body is still to come: nobody knows whether it ever does.
    """

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect()

    def shutdown(self) -> None:
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.transport.close()
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _expect(self) -> None:
        """The timer runs while part of a head has come, and from the start of a connection."""
        idle = self.timeout_keep_alive_task is not None
        if (self.cycle is not None and not self.cycle.response_complete) or idle:
            self._forget()
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_S, self._end)

    def _forget(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _end(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
