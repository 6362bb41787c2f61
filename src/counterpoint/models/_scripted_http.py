"""The HTTP side of the scripted server: reads requests, acts out faults, keeps the log."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import urlsplit

from counterpoint.errors import CounterpointError, ModelError, UsageError
from counterpoint.models._openai_wire import Answer, chat_messages, embeddings, response_messages
from counterpoint.models._script import Fault, Script, Turn

__all__ = ["Endpoint", "Log", "LoggedRequest"]

_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie"})
_ERROR_KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_exceeded"}


@dataclass
class LoggedRequest:
    """One request as the server saw it."""

    number: int
    """From 1, in the order of coming in."""
    path: str
    headers: Mapping[str, str]
    """Names in lower case; the values of those that carry keys are hidden."""
    body: Any
    """Decoded JSON; the text where it is none."""
    started_at: float
    """Seconds since the epoch."""
    ended_at: float | None = None
    status: int | None = None
    """None while it is open and where no header was sent."""
    tokens_in: int = 0
    """As reported to the client."""
    tokens_out: int = 0
    complete: bool = False
    """The whole answer was written to a connection that was still open."""
    fault: Fault | None = None


@dataclass
class Log:
    """What the server's threads share."""

    requests: list[LoggedRequest] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    open_now: int = 0
    peak: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, path: str, headers: Mapping[str, str], body: Any) -> LoggedRequest:
        """The entry of a request that has just come in."""
        with self.lock:
            entry = LoggedRequest(len(self.requests) + 1, path, headers, body, started_at=time.time())
            self.requests.append(entry)
            self.open_now += 1
            self.peak = max(self.peak, self.open_now)
            return entry

    def end(self, request: LoggedRequest) -> None:
        """The request is open no more; told twice, it counts once."""
        with self.lock:
            if request.ended_at is None:
                request.ended_at = time.time()
                self.open_now -= 1


class Endpoint(ThreadingHTTPServer):
    """The listening socket, a thread a connection."""

    daemon_threads = True
    request_queue_size = 1024  # hundreds of clients may connect at the same instant

    def __init__(self, port: int, script: Script, log: Log, model: str, latency_s: float) -> None:
        self.script, self.log, self.model, self.latency_s = script, log, model, latency_s
        self.closing = threading.Event()
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            raise ModelError(f"the scripted server cannot listen on port {port}: {error}") from None

    def server_bind(self) -> None:
        # HTTPServer's own also asks the resolver for the host's name, which can take seconds.
        TCPServer.server_bind(self)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self._connections_lock:
            self._connections.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._connections_lock:
                self._connections.discard(request)

    def end_connections(self) -> None:
        """Cut what clients keep open, so that no thread outlives the server."""
        with self._connections_lock:
            connections = list(self._connections)
        for connection in connections:
            _cut(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, OSError):  # a client that went away is no error of the server's
            self.log.errors.append(f"{type(error).__name__}: {error}")


class _Handler(BaseHTTPRequestHandler):
    """One connection; `server` is the `Endpoint`."""

    server: Endpoint
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # status, headers and body leave in one piece

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the log is kept, not printed."""

    def do_GET(self) -> None:
        self._serve("", self._list_models)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        raw = self.rfile.read(int(length)) if length.isdecimal() else b""
        self._serve(raw.decode("utf-8", "replace"), self._answer)

    def _serve(self, text: str, answer: Callable[[LoggedRequest], None]) -> None:
        try:
            body = json.loads(text)
        except ValueError:
            body = text
        names = {name.lower(): value for name, value in self.headers.items()}
        headers = {name: "(hidden)" if name in _SECRET_HEADERS else value for name, value in names.items()}
        entry = self.server.log.start(self.path, headers, body)
        try:
            answer(entry)
        except ConnectionError:  # the client is gone, or the server closes
            self.close_connection = True
        except Exception as error:  # a reply function of the user's may raise anything
            told = str(error) if isinstance(error, CounterpointError) else f"{type(error).__name__}: {error}"
            self.server.log.errors.append(told)
            self._refuse(entry, 400, told)
        finally:
            self.server.log.end(entry)

    def _list_models(self, entry: LoggedRequest) -> None:
        model = {"id": self.server.model, "object": "model", "created": 0, "owned_by": "counterpoint"}
        path = self._path()
        if path == "/models":
            self._send(entry, [json.dumps({"object": "list", "data": [model]})])
        elif path.startswith("/models/"):
            self._send(entry, [json.dumps({**model, "id": path.removeprefix("/models/")})])
        else:
            self._refuse(entry, 404, f"nothing is served at {self.path}")

    def _answer(self, entry: LoggedRequest) -> None:
        path, body = self._path(), entry.body
        if path not in ("/chat/completions", "/responses", "/embeddings"):
            self._refuse(entry, 404, f"nothing is served at {self.path}")
        elif not isinstance(body, dict):
            raise UsageError("the body of the request is no JSON object")
        elif path == "/embeddings":
            vectors = embeddings(body, str(body.get("model") or self.server.model))
            entry.tokens_in = vectors["usage"]["prompt_tokens"]
            self._send(entry, [json.dumps(vectors)])
        else:
            self._speak(entry, chat=path == "/chat/completions")

    def _speak(self, entry: LoggedRequest, *, chat: bool) -> None:
        messages = chat_messages(entry.body) if chat else response_messages(entry.body)
        said = self.server.script.answer(messages)
        fault = entry.fault = said if isinstance(said, Fault) else None
        if self.server.closing.wait(self.server.latency_s + (fault.stall_s if fault else 0)):
            raise ConnectionAbortedError
        if fault and fault.status != 200:
            self._refuse(entry, fault.status, "scripted fault", fault)
            return
        stream = bool(entry.body.get("stream"))
        if fault and fault.body is not None:
            pieces: Iterable[str] = [f"data: {fault.body}\n\n" if stream else fault.body]
        else:
            spoiled = fault.reply if fault else said
            turn = spoiled if isinstance(spoiled, Turn) else Turn(str(spoiled))
            answer = Answer(turn, entry.number, str(entry.body.get("model") or self.server.model), messages)
            entry.tokens_in, entry.tokens_out = answer.tokens_in, answer.tokens_out
            pieces = _encoded(answer, entry.body, chat, stream)
        self._send(entry, pieces, stream=stream, fault=fault)

    def _refuse(self, entry: LoggedRequest, status: int, message: str, fault: Fault | None = None) -> None:
        kind = "server_error" if status >= 500 else _ERROR_KINDS.get(status, "invalid_request_error")
        error = {"message": message, "type": kind, "param": None, "code": kind}
        body = fault.body if fault and fault.body is not None else json.dumps({"error": error})
        self._send(entry, [body], status=status, fault=fault)

    def _send(
        self,
        entry: LoggedRequest,
        pieces: Iterable[str],
        *,
        status: int = 200,
        stream: bool = False,
        fault: Fault | None = None,
    ) -> None:
        parts = [piece.encode("utf-8", "replace") for piece in pieces]
        size = sum(map(len, parts))
        if _is_gone(self.connection) or (fault and fault.drop_after == 0):
            self._drop()
            return
        self._send_head(entry, status, None if stream else size, fault)
        if fault and fault.drop_after is not None:
            for part in _first(parts, min(fault.drop_after, size - 1)):
                self._write(part, stream)
            self._drop()
            return
        for part in parts[:-1]:
            self._write(part, stream)
            self.wfile.flush()
        self._write(parts[-1], stream)
        if stream:
            self._write(b"", stream)
        # Entered before the last byte leaves: who has the answer may look into the log at once.
        entry.complete = True
        self.server.log.end(entry)
        try:
            self.wfile.flush()
        except OSError:
            entry.complete = False
            raise

    def _send_head(self, entry: LoggedRequest, status: int, size: int | None, fault: Fault | None) -> None:
        entry.status = status
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if size is None else "application/json")
        if fault and fault.retry_after_s is not None:
            self.send_header("Retry-After", f"{fault.retry_after_s:g}")
        if size is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(size))
        self.end_headers()

    def _write(self, data: bytes, chunked: bool) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)

    def _drop(self) -> None:
        self.wfile.flush()
        _cut(self.connection)
        self.close_connection = True

    def _path(self) -> str:
        return urlsplit(self.path).path.rstrip("/").removeprefix("/v1")


def _encoded(answer: Answer, body: Mapping[str, Any], chat: bool, stream: bool) -> Iterable[str]:
    if not stream:
        return [json.dumps(answer.chat() if chat else answer.response())]
    options = body.get("stream_options")
    include_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    return answer.chat_stream(include_usage) if chat else answer.response_stream()


def _first(parts: Iterable[bytes], size: int) -> Iterable[bytes]:
    """The first ``size`` bytes of ``parts``, cut where they were cut."""
    for part in parts:
        if size <= 0:
            return
        yield part[:size]
        size -= len(part)


def _is_gone(connection: socket.socket) -> bool:
    """Has the client closed its side? What is sent to it now would count as received."""
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    finally:
        connection.setblocking(True)


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):  # it may be cut already
        connection.shutdown(socket.SHUT_RDWR)
