"""Who may talk to the server: nothing is trusted only because it comes from this machine.

Conventions
-----------
* A web page that a user visits can send requests to loopback. Its host name may be made to mean this machine
  (DNS rebinding), so the Host header has to be one that the server knows; and a browser says with every
  request where it comes from, so whatever changes something, and the stream of events, is refused to other
  origins. No CORS header is ever sent.
* With a token everything but `OPEN` wants it: as ``Authorization: Bearer``, or once in the form at /login,
  which gives a cookie whose value is random and not the token.
* Texts are compared as bytes and in constant time; wrong tokens are answered slowly.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import secrets
import time
from collections.abc import Collection
from html import escape
from urllib.parse import parse_qs, quote

from counterpoint.view.server.layout import static_url
from counterpoint.view.server.responses import (
    Application,
    Message,
    Receive,
    Response,
    Scope,
    Send,
    header,
    reply,
    reply_unread,
    status,
)

__all__ = ["COOKIE", "HEADERS", "Guard", "Sessions", "known_host"]

COOKIE = "counterpoint_session"
OPEN = ("/healthz", "/login", "/static/pages.css")
"""What is answered without a token: the style is that of the form."""

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""On every answer, where the answer does not say otherwise itself."""

SESSION_S = 12 * 3600
_SESSIONS = 1000
_FORM_BYTES = 8192
_FORM_S = 10.0
_SLOW_S = 0.5

_LOG = logging.getLogger("counterpoint.serve")


class Guard:
    """ASGI middleware: checks every request, and puts `HEADERS` on every answer."""

    def __init__(self, app: Application, *, token: str | None = None, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.strip("[]").rstrip(".").lower() for host in hosts)
        self._sessions = None if token is None else Sessions(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        secured = _Secured(send)
        try:
            response = self._refusal(scope)
            if response is None and self._sessions is not None:
                response = await self._sessions.answer(scope, receive)
            if response is not None:
                await reply_unread(receive, secured, response)
            else:
                await self._app(scope, receive, secured)
        except Exception:
            _LOG.exception("%s %s failed", scope["method"], scope["path"])
            if secured.started:
                raise
            await reply(secured, status(scope, 500, "something is wrong here; the server's log says what"))

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that must not come in, from whomever."""
        named = [value.decode("latin-1") for key, value in scope["headers"] if key == b"host"]
        host = named[0] if len(named) == 1 else ""
        if not known_host(host, self._hosts):
            name = _name_of(host) or "NAME"
            return status(
                scope, 421, f"Host {host[:200]!r} is not known here; if it is yours: counterpoint serve "
                f"--allow-host {name[:200]!a}",
            )  # fmt: skip
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") or scope["path"] == "/events":
            origin = header(scope, b"origin")
            site = header(scope, b"sec-fetch-site")
            own = ("", f"http://{host}", f"https://{host}")
            ours = site in ("same-origin", "none") if site else origin in own
            if not ours:
                return status(scope, 403, "a page of another site may not do this")
        return None


class _Secured:
    """Sends what an application sends, with `HEADERS` added."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = list(message.get("headers", ()))
            said = {name.lower() for name, _ in headers}
            message["headers"] = [*headers, *(pair for pair in HEADERS if pair[0] not in said)]
        await self._send(message)


def known_host(host: str, hosts: Collection[str]) -> bool:
    """Is the value of a Host header one of loopback, or one of ``hosts``?

    Where one of them is an address of this machine in a network, any address will do: what DNS rebinding
    turns to this machine is a name.

    >>> known_host("localhost:4318", ()), known_host("evil.example", ()), known_host("10.0.0.7", ["0.0.0.0"])
    (True, False, True)
    """
    name = _name_of(host)
    if name == "localhost" or name in hosts:
        return True
    address = _address(name)
    if address is None or address.is_loopback:
        return address is not None
    return any(known is not None and not known.is_loopback for known in map(_address, hosts))


def _name_of(host: str) -> str:
    """The host without its port; empty where there is none."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name.rstrip(".").lower()


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class Sessions:
    """The token, and the browsers that have shown it."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._until: dict[bytes, float] = {}
        """Hash of a cookie to the end of its time: a look-up by hash tells nothing of the value."""
        self._wrong = 0
        """Wrong tokens that still wait for their answer."""

    async def answer(self, scope: Scope, receive: Receive) -> Response | None:
        """None where the request may pass; the form; or what a request without the token gets."""
        path, method = scope["path"], scope["method"]
        if path == "/login" and method == "POST":
            return await self._login(scope, receive)
        if path == "/login" and method in ("GET", "HEAD"):
            return _form(scope, 200, "")
        if path == "/logout" and method == "POST":
            self._until.pop(_hash(_cookie(scope)), None)
            return _moved(b"/login", f"{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict")
        if path in OPEN:
            return None
        scheme, _, shown = header(scope, b"authorization").partition(" ")
        if shown:
            if scheme.lower() == "bearer" and self._right(shown.strip().encode("latin-1")):
                return None
            await self._slowly()
        elif self._until.get(_hash(_cookie(scope)), 0.0) > time.monotonic():
            return None
        elif method == "GET" and "text/html" in header(scope, b"accept"):
            query = scope.get("query_string", b"").decode("latin-1")
            return _moved(b"/login?next=" + quote(f"{path}?{query}" if query else path).encode())
        challenge = (b"www-authenticate", b'Bearer realm="counterpoint"')
        return status(scope, 401, "a token is wanted: Authorization: Bearer TOKEN", challenge)

    async def _login(self, scope: Scope, receive: Receive) -> Response:
        form = await _read_form(receive)
        if self._wrong >= 32:
            return status(scope, 429, "too many wrong tokens: wait", (b"retry-after", b"5"))
        if not self._right(form.get("token", [""])[0].encode("utf-8", "replace")):
            await self._slowly()
            return _form(scope, 401, "That is not the token.")
        value = secrets.token_urlsafe(32)
        now = time.monotonic()
        self._until = {key: until for key, until in self._until.items() if until > now}
        while len(self._until) >= _SESSIONS:
            del self._until[next(iter(self._until))]
        self._until[_hash(value)] = now + SESSION_S
        to = form.get("next", ["/"])[0]
        local = to.startswith("/") and not to.startswith("//") and to.isascii() and to.isprintable()
        return _moved(
            quote(to if local and "\\" not in to else "/", safe="/?=&%+").encode(),
            f"{COOKIE}={value}; Path=/; Max-Age={SESSION_S}; HttpOnly; SameSite=Strict",
        )

    def _right(self, token: bytes) -> bool:
        return hmac.compare_digest(token, self._token)

    async def _slowly(self) -> None:
        """The more wrong tokens come at one time, the longer each waits for its answer."""
        self._wrong += 1
        try:
            await asyncio.sleep(min(_SLOW_S * self._wrong, 10.0))
        finally:
            self._wrong -= 1


def _hash(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "replace")).digest()


def _cookie(scope: Scope) -> str:
    for key, value in scope["headers"]:
        if key == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                name, _, found = pair.strip().partition("=")
                if name == COOKIE:
                    return str(found)
    return ""


async def _read_form(receive: Receive) -> dict[str, list[str]]:
    """The fields of a small form; none where it is large, slow or no form."""
    body = b""
    more = True
    try:
        async with asyncio.timeout(_FORM_S):
            while more and len(body) <= _FORM_BYTES:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
        return {} if more else parse_qs(body.decode(), max_num_fields=10)
    except (TimeoutError, ValueError):
        return {}


def _moved(to: bytes, cookie: str = "") -> Response:
    headers = [(b"location", to)]
    if cookie:
        headers.append((b"set-cookie", cookie.encode("latin-1")))
    return Response(303, b"", "text/plain; charset=utf-8", tuple(headers))


def _form(scope: Scope, code: int, problem: str) -> Response:
    to = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=10).get("next", ["/"])[0]
    alert = f'<p class="fault" role="alert">{escape(problem)}</p>' if problem else ""
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in · Counterpoint</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="{static_url("pages.css")}"></head>
<body><main class="login"><h1>Counterpoint</h1>{alert}
<form method="post" action="/login"><input type="hidden" name="next" value="{escape(to)}">
<p><label for="token">Token</label>
<input type="password" id="token" name="token" autocomplete="current-password" required autofocus
aria-describedby="which"> <button>Log in</button></p>
<p class="note" id="which">The token that <code>counterpoint serve</code> was started with
(<code>--token</code> or <code>COUNTERPOINT_TOKEN</code>).</p></form></main></body></html>
"""
    # Without a referrer a browser says of the form, too, that its origin is "null".
    return Response(code, page.encode(), "text/html; charset=utf-8", ((b"referrer-policy", b"same-origin"),))
