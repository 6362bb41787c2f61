"""An HTTP client whose answers end: after a number of seconds in all, and of bytes.

A client's own timeout is one of silence, so that a byte now and then keeps a call open for ever; and nothing
bounds how much comes in.

Conventions
-----------
* Whatever a call waits for (the connection, TLS, a proxy, headers, the body, redirects) waits no longer than
  what is left of its time. Only the look-up of a host's name is the system's, with a timeout of its own.
* Bodies, errors' included, are counted as they come in and as they are unpacked, so that a small one cannot
  become a large one. Packed ones were not asked for; gzip and deflate are read all the same.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
import zlib
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from counterpoint.errors import UsageError
from counterpoint.secrets import mask

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["LARGEST_BODY", "Unbounded", "bounded_client"]

LARGEST_BODY = 32 * 2**20
"""Bytes of one answer; the longest replies of a model have some hundred thousand."""
_BEGUN = "counterpoint.begun"
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_PROXIES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")


class Unbounded(Exception):
    """An answer that was cut off, for it took too long or was too large."""

    def __init__(self, what: str, *, again: bool) -> None:
        super().__init__(what)
        self.again = again
        """Another attempt may go better."""


def bounded_client(base_url: str, key: str, timeout_s: float) -> OpenAI:
    """A client of an endpoint that tries once; UsageError where the environment lets it make no connection.

    Parameters
    ----------
    timeout_s: seconds of silence, and from the request to the end of the answer.
    """
    from openai import DefaultHttpxClient, OpenAI

    deadline = _Deadline(timeout_s)

    def begin(request: Any) -> None:
        # What a redirect leads to has the extensions, and so the time, of what was asked first.
        deadline.begun = request.extensions.setdefault(_BEGUN, time.monotonic())

    def bound(response: Any) -> None:
        packing = response.headers.pop("content-encoding", "identity").strip().lower()
        if packing not in _PACKED | {"identity", ""}:
            raise Unbounded("the answer is packed as nobody asked for, and not by gzip", again=False)
        kind = _bounded(sys.modules[type(response).__module__.partition(".")[0]].SyncByteStream)
        response.stream = kind(response.stream, deadline, packing in _PACKED)

    try:
        http = DefaultHttpxClient(event_hooks={"request": [begin], "response": [bound]}, timeout=timeout_s)
    except (ImportError, ValueError, OSError) as error:
        raise UsageError(_told(error)) from None
    _keep(deadline, http)
    client = OpenAI(
        base_url=base_url,
        api_key=key,
        timeout=timeout_s,
        max_retries=0,
        default_headers={"Accept-Encoding": "identity"},
        http_client=http,
    )
    weakref.finalize(client, http.close)  # as a client does with connections of its own
    return client


class _Deadline(threading.local):
    """When the call that this thread makes has to be over: a call is made in one thread."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.begun = time.monotonic()

    def left(self, asked_s: float | None = None) -> float:
        """Seconds that may be waited, at most those asked for; Unbounded where none are left."""
        left = self.begun + self.timeout_s - time.monotonic()
        if left <= 0:
            raise Unbounded(f"no whole answer within {self.timeout_s:g} s", again=True)
        return left if asked_s is None else min(left, asked_s)


def _keep(deadline: _Deadline, http: Any) -> None:
    """Have a client's connections, by proxies or not, keep a deadline.

    The HTTP library takes a network of one's own for a pool only, and no pool for a client that goes by the
    proxies and certificates of the environment; so the network is exchanged in the pools that it made. Where
    a later version has none there, a body is still cut off at the deadline, and headers that drip are not.
    """
    made: list[Any] = [getattr(http, "_transport", None), *getattr(http, "_mounts", {}).values()]
    for transport in made:
        pool: Any = getattr(transport, "_pool", None)
        if hasattr(pool, "_network_backend"):  # an address for which no proxy is used has no pool of its own
            pool._network_backend = _Network(pool._network_backend, deadline)


class _Network:
    """A network whose connections keep a deadline."""

    def __init__(self, network: Any, deadline: _Deadline) -> None:
        self.network, self.deadline = network, deadline

    def connect_tcp(self, *where: Any, timeout: float | None = None, **how: Any) -> _Connection:
        opened = self.network.connect_tcp(*where, timeout=self.deadline.left(timeout), **how)
        return _Connection(opened, self.deadline)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


class _Connection:
    """A connection that waits no longer than the call has time."""

    def __init__(self, stream: Any, deadline: _Deadline) -> None:
        self.stream, self.deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        return self.stream.read(max_bytes, self.deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.stream.write(buffer, self.deadline.left(timeout))

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> _Connection:
        try:
            left = self.deadline.left(timeout)
        except Unbounded:
            self.stream.close()  # as the network itself does where it fails here: nobody else would
            raise
        return _Connection(self.stream.start_tls(ssl_context, server_hostname, left), self.deadline)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@cache
def _bounded(base: type) -> type:
    """A stream of bytes as the HTTP library in use wants it: which one that is, the client's version says."""

    class Bounded(base):  # type: ignore[misc]
        def __init__(self, stream: Any, deadline: _Deadline, packed: bool) -> None:
            self.stream, self.deadline, self.packed = stream, deadline, packed

        def __iter__(self) -> Iterator[bytes]:
            came = size = 0
            unpack = zlib.decompressobj(_GZIP_OR_ZLIB).decompress if self.packed else None
            for chunk in self.stream:
                came += len(chunk)
                try:
                    told = unpack(chunk, LARGEST_BODY - size + 1) if unpack else chunk
                except zlib.error as error:
                    raise Unbounded(f"the answer cannot be unpacked: {error}", again=True) from None
                size += len(told)
                if max(came, size) > LARGEST_BODY:
                    raise Unbounded(f"the answer is larger than {LARGEST_BODY / 2**20:g} MB", again=False)
                self.deadline.left()
                yield told

        def close(self) -> None:
            self.stream.close()

    return Bounded


def _told(error: Exception) -> str:
    """Which variable of the environment is in the way."""
    if isinstance(error, OSError):
        file = os.environ.get("SSL_CERT_FILE", "")
        where = f"SSL_CERT_FILE={mask(file)}" if file else "the certificates of this system"
        return f"{where} cannot be used for connections: {error.strerror or error}"
    named = [name for one in _PROXIES for name in (one, one.lower()) if os.environ.get(name)]
    what = mask(" ".join(str(error).split()))
    if isinstance(error, ImportError):
        what = "SOCKS proxies need the package socksio"
    return f"no connection can be made by {', '.join(named) or 'the proxy of this system'}: {what}"
