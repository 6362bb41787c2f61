"""An HTTP client whose answers end: after a number of seconds in all, and of bytes.

A client's own timeout is one of silence, so that a byte now and then keeps a call open for ever; and nothing
bounds how much comes in. Both are checked here while a body is read, errors' bodies included.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
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
_LARGEST_PACKED = 2**20
"""The same of a body that is compressed, though none was asked for: it may be a thousand times as large."""
_BEGUN = "counterpoint.begun"
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

    def begin(request: Any) -> None:
        request.extensions[_BEGUN] = time.monotonic()

    def bound(response: Any) -> None:
        packed = response.headers.get("content-encoding", "identity") != "identity"
        kind = _bounded(sys.modules[type(response).__module__.partition(".")[0]].SyncByteStream)
        response.stream = kind(
            response.stream,
            request_begun=response.request.extensions.get(_BEGUN, time.monotonic()),
            timeout_s=timeout_s,
            most=_LARGEST_PACKED if packed else LARGEST_BODY,
        )

    try:
        http = DefaultHttpxClient(event_hooks={"request": [begin], "response": [bound]}, timeout=timeout_s)
    except (ImportError, ValueError, OSError) as error:
        raise UsageError(_told(error)) from None
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


@cache
def _bounded(base: type) -> type:
    """A stream of bytes as the HTTP library in use wants it: which one that is, the client's version says."""

    class Bounded(base):  # type: ignore[misc]
        def __init__(self, stream: Any, *, request_begun: float, timeout_s: float, most: int) -> None:
            self.stream, self.most = stream, most
            self.request_begun, self.timeout_s = request_begun, timeout_s

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for chunk in self.stream:
                size += len(chunk)
                if size > self.most:
                    raise Unbounded(f"the answer is larger than {self.most / 2**20:g} MB", again=False)
                if time.monotonic() - self.request_begun > self.timeout_s:
                    raise Unbounded(f"the answer was not complete within {self.timeout_s:g} s", again=True)
                yield chunk

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
