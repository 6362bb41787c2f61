"""Where events of a recording go: to the end of a file, or to a running ``counterpoint serve``."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Protocol
from urllib.parse import urlsplit

from counterpoint.errors import UsageError
from counterpoint.secrets import mask

__all__ = ["ATTRIBUTE", "Place", "place"]

ATTRIBUTE = "counterpoint.recording"
"""The attribute of a span that holds an event."""

PATIENCE_S = 60.0
"""How long a server may say that it is too busy before a recording fails."""

AWAY_S = 10.0
"""How long a server may be away: restarted, or behind a connection that breaks."""

_BUSY = (429, 502, 503, 504)  # the answers after which OTLP asks for the same request again

_ADDRESS = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):\d+(?:/.*)?", re.DOTALL)
_SCHEME = re.compile(r"(https?):/?(?!/)", re.IGNORECASE)  # and not the two slashes
_OPENING = b'{"schema":"counterpoint.recording/'
_EVENT = re.compile(rb'\{.*"schema"\s*:\s*"counterpoint\.recording/')
_HEAD = 64 * 1024

_BINARY = getattr(os, "O_BINARY", 0)  # of Windows, which else writes a line's end as two characters


class Place(Protocol):
    """What a recording writes to; its methods raise UsageError where they cannot do their work."""

    def open(self) -> None:
        """Before the first event."""

    def write(self, run: str, line: bytes) -> None:
        """Keeps one event of the run; once this returns, nothing that ends the process loses it."""

    def close(self) -> None:
        """After the last event."""


def place(path: str) -> Place:
    """The place that a user calls ``path``."""
    if path.lower().startswith(("http://", "https://")):
        return _Server(path)
    if _ADDRESS.fullmatch(path):
        raise UsageError(
            f"{path}: an address begins with its scheme: to='http://{path}' (a file of that name: './{path}')"
        )
    if found := _SCHEME.match(path):
        whole = f"{found[1].lower()}://"
        raise UsageError(f"{path}: an address begins with {whole}: to={whole + path[found.end() :]!r}")
    if "://" in path or path.endswith((".gz", ".parquet")):
        raise UsageError(f"{path}: a recording is written to a JSONL file, such as recording.jsonl")
    return _File(path)


class _File:
    """A file that lines are added to, by several processes at once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._torn = False
        """The last line may be incomplete: what follows must not be glued to it."""

    def open(self) -> None:
        with self._told():
            self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY, 0o666)
        try:
            with self._told():
                self._look()
        except UsageError:
            self.close()
            raise

    def _look(self) -> None:
        """Refuses a file of something else; a first line that was cut off is one of ours."""
        line = os.read(self._file, _HEAD).lstrip().partition(b"\n")[0]
        if not (_OPENING.startswith(line) or _EVENT.match(line)):
            found = mask(line.decode("utf-8", "replace"))[:40].rstrip()
            raise UsageError(
                f"{self._path}: is no recording: its first line is {found!r}: give a new or an empty file"
            )
        if os.lseek(self._file, 0, os.SEEK_END):
            os.lseek(self._file, -1, os.SEEK_END)
            self._torn = os.read(self._file, 1) != b"\n"

    def write(self, run: str, line: bytes) -> None:
        """Adds the line in one piece, so that it stands alone whoever else writes."""
        left = b"\n" * self._torn + line + b"\n"
        self._torn = True
        with self._told():
            while left:  # a write comes up short where a disk is full, and then the next one says so
                left = left[os.write(self._file, left) :]
        self._torn = False

    def close(self) -> None:
        os.close(self._file)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror or error}") from error


class _Server:
    """A receiver of OTLP/HTTP: each event is a span, and is stored when the answer comes."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if not parts.hostname:
            raise UsageError(f"{url}: names no host: give the address that `counterpoint serve` tells")
        try:
            _ = parts.port
        except ValueError:
            raise UsageError(f"{url}: names no port: a port is a number up to 65535") from None
        self._url = url
        self._path = f"{parts.path.rstrip('/').removesuffix('/v1/traces')}/v1/traces"
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.netloc.rpartition("@")[2], timeout=30)
        self._headers = {"Content-Type": "application/json"}
        if token := os.environ.get("COUNTERPOINT_TOKEN"):
            self._headers["Authorization"] = f"Bearer {token}"
        self._spans = 0

    def open(self) -> None:
        with self._told():  # at once: before the team begins nothing is lost, and the address may be wrong
            self._connection.connect()

    def write(self, run: str, line: bytes) -> None:
        """Sends the event; where the server says that it is too busy, again after the time it asks for."""
        self._spans += 1
        body = json.dumps(_request(run, self._spans, line)).encode()
        until = time.monotonic() + PATIENCE_S
        while True:
            answer, told = self._answer(body)
            if answer.status == 200 and _taken(told):
                return
            if answer.status not in _BUSY or time.monotonic() > until:
                reason = " ".join(told.decode("utf-8", "replace").split())[:300]
                raise UsageError(f"{self._url}: did not take the event: {answer.status} {reason}")
            wait = answer.headers.get("Retry-After", "1")
            time.sleep(min(float(wait) if wait.isdecimal() else 1.0, 10.0))

    def close(self) -> None:
        self._connection.close()

    def _answer(self, body: bytes) -> tuple[HTTPResponse, bytes]:
        """The answer and its body.

        A connection that fails is made anew: at once, since the server may have closed it meanwhile, and then
        ever later until the server was away for `AWAY_S`.
        """
        until, wait = 0.0, 0.0
        with self._told():
            while True:
                try:
                    self._connection.request("POST", self._path, body, self._headers)
                    answer = self._connection.getresponse()
                    return answer, answer.read()
                except (OSError, HTTPException):
                    self._connection.close()
                    until = until or time.monotonic() + AWAY_S
                    if wait and time.monotonic() > until:
                        raise
                time.sleep(wait)
                wait = min(2 * wait + 0.1, 2.0)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (OSError, HTTPException) as error:
            self._connection.close()
            reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
            raise UsageError(
                f"{self._url}: cannot be reached: {reason}; is `counterpoint serve` running?"
            ) from error


def _taken(told: bytes) -> bool:
    """Does the body of an answer of 200 say that the span is stored? Another kind of server says anything."""
    try:
        said = json.loads(told or b"{}")
    except ValueError:
        return False
    return isinstance(said, dict) and not said.get("partialSuccess")


def _request(run: str, number: int, line: bytes) -> dict[str, Any]:
    """An ``ExportTraceServiceRequest`` of one span; sent again it is the same span."""
    event = json.loads(line)
    step = event.get("step", {})
    began = step.get("started_at", event.get("at", 0.0))
    span = {
        "traceId": run,
        "spanId": f"{number:016x}",
        "name": f"{event['event']} {step.get('agent', event.get('name', ''))}".strip(),
        "kind": 1,
        "startTimeUnixNano": str(int(began * 1e9)),
        "endTimeUnixNano": str(int(step.get("ended_at", began) * 1e9)),
        "attributes": [{"key": ATTRIBUTE, "value": {"stringValue": line.decode()}}],
    }
    if number > 1:
        span["parentSpanId"] = f"{1:016x}"
    scope = {"scope": {"name": "counterpoint"}, "spans": [span]}
    service = {"key": "service.name", "value": {"stringValue": "counterpoint"}}
    return {"resourceSpans": [{"resource": {"attributes": [service]}, "scopeSpans": [scope]}]}
