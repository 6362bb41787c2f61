from __future__ import annotations

import http.client
import re
import socket
import time
from contextlib import closing, suppress
from html import unescape
from urllib.parse import urlencode

import pytest

pytest.importorskip("fastapi")

from counterpoint.view.server import listening
from counterpoint.view.server.security import COOKIE, HEADERS, known_host

HANGS_S = 300.0
"""So long a test waits for what has to come, however slow or busy the machine is."""
TOKEN = "correct horse battery staple ä"
BEARER = {"authorization": f"Bearer {TOKEN}".encode()}
FORM = {"content_type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def guarded(servings):
    return servings(token=TOKEN)


@pytest.mark.parametrize(
    ("host", "hosts", "known"),
    [
        ("localhost", (), True),
        ("LOCALHOST:4318", (), True),
        ("localhost.", (), True),
        ("127.0.0.1:80", (), True),
        ("127.0.0.2:80", (), True),
        ("10.0.0.7", ("127.0.0.1",), False),
        ("[::1]:4318", (), True),
        ("", (), False),
        ("evil.example", (), False),
        ("localhost.evil.example", (), False),
        ("127.0.0.1.evil.example:4318", (), False),
        ("evil.example:localhost", (), False),
        ("10.0.0.7", (), False),
        ("10.0.0.7:4318", ("0.0.0.0",), True),
        ("[fe80::1]:4318", ("0.0.0.0",), True),
        ("evil.example", ("0.0.0.0",), False),
        ("traces.lan:4318", ("traces.lan",), True),
        ("10.0.0.7", ("traces.lan",), False),
    ],
)
def test_a_host_is_known_by_its_name_not_by_what_the_name_means(
    host: str, hosts: tuple[str, ...], known: bool
):
    assert known_host(host, hosts) == known


@pytest.mark.parametrize("path", ["/", "/v1/traces", "/healthz", "/events"])
def test_a_host_that_is_not_known_is_421_and_told_of_the_option(receiver, path: str):
    answer = receiver.ask("GET", path, host="evil.example:4318")
    assert answer.status == 421
    assert "--allow-host" in answer.text
    assert "evil.example" in answer.text


def test_two_hosts_or_none_are_refused(receiver):
    for head in (b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", receiver.port), timeout=HANGS_S) as connection:
            connection.sendall(head)
            assert connection.recv(100).split()[1] in (b"400", b"421")


def test_a_further_host_can_be_allowed(serving, kept):
    assert serving(kept, hosts=["Traces.LAN"]).ask("GET", "/healthz", host="traces.lan:1").status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "none"}, 200),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "null", "sec_fetch_site": "cross-site"}, 403),
        ({"origin": "null", "sec_fetch_site": "same-origin"}, 200),
        ({"origin": "http://localhost:4318.evil.example"}, 403),
        ({"origin": "http://localhost:4318"}, 200),
    ],
)
def test_what_a_page_of_another_site_sends_is_refused(receiver, headers: dict[str, str], status: int):
    answer = receiver.ask(
        "POST", "/v1/traces", b"{}", content_type="application/json", host="localhost:4318", **headers
    )
    assert answer.status == status
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("headers", [{"sec_fetch_site": "cross-site"}, {"origin": "http://evil.example"}])
def test_events_are_not_for_other_sites(receiver, headers: dict[str, str]):
    assert receiver.ask("GET", "/events", **headers).status == 403


def test_a_preflight_gets_no_permission(receiver):
    answer = receiver.ask(
        "OPTIONS", "/v1/traces", origin="http://evil.example", access_control_request_method="POST"
    )
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/healthz"),
        ("GET", "/nothing"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("POST", "/v1/traces"),
    ],
)
def test_every_answer_has_the_security_headers_and_names_no_server(receiver, method: str, path: str):
    answer = receiver.ask(method, path)
    assert {name.decode(): value.decode() for name, value in HEADERS}.items() <= answer.headers.items()
    assert "server" not in answer.headers
    assert path in ("/healthz", "/v1/traces") or answer.status == 404


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/../x"],
)
def test_no_path_reaches_the_file_system(receiver, path: str):
    assert receiver.ask("GET", path).status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/traces"), ("GET", "/"), ("GET", "/events"), ("GET", "/runs/x"), ("GET", "/nothing")],
)
def test_with_a_token_nothing_is_told_without_it(guarded, method: str, path: str):
    answer = guarded.ask(method, path, content_type="application/json")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="counterpoint"')
    assert answer.headers["cache-control"] == "no-store"


def test_an_exporter_shows_the_token_in_a_header(guarded):
    sent = {"content_type": "application/json"}
    assert guarded.ask("POST", "/v1/traces", b"{}", **sent, **BEARER).status == 200


@pytest.mark.parametrize("shown", ["Bearer wrong", "Basic abc", f"Bearer {TOKEN[:-1]}", "Bearer"])
def test_a_wrong_token_is_401_and_slow(guarded, shown: str):
    start = time.monotonic()
    answer = guarded.ask("GET", "/nothing", authorization=shown.encode())
    assert answer.status == 401
    assert shown == "Bearer" or time.monotonic() - start > 0.4


def test_health_is_told_to_all(guarded):
    assert guarded.ask("GET", "/healthz").status == 200


def test_a_browser_is_led_to_the_form_and_back(guarded):
    moved = guarded.ask("GET", "/nothing", accept="text/html")
    assert (moved.status, moved.headers["location"]) == (303, "/login?next=/nothing")
    form = guarded.ask("GET", moved.headers["location"])
    assert form.status == 200
    assert 'value="/nothing"' in form.text
    body = urlencode({"token": TOKEN, "next": "/nothing"})
    entered = guarded.ask("POST", "/login", body, **FORM, sec_fetch_site="same-origin")
    cookie, _, attributes = entered.headers["set-cookie"].partition(";")
    assert (entered.status, entered.headers["location"]) == (303, "/nothing")
    assert {" HttpOnly", " SameSite=Strict", " Path=/"} <= set(attributes.split(";"))
    assert TOKEN not in cookie
    assert guarded.ask("GET", "/nothing", cookie=f"other=1; {cookie}").status == 404
    assert guarded.ask("GET", "/nothing", cookie=f"{cookie}x").status == 401
    assert guarded.ask("POST", "/logout", cookie=cookie, sec_fetch_site="cross-site").status == 403
    assert guarded.ask("POST", "/logout", cookie=cookie).status == 303
    assert guarded.ask("GET", "/nothing", cookie=cookie).status == 401


def test_the_way_back_keeps_what_was_asked(guarded):
    path = "/compare?a=1&b=x+y%26z&b=%2F%22"
    moved = guarded.ask("GET", path, accept="text/html")
    assert moved.status == 303
    form = guarded.ask("GET", moved.headers["location"])
    (to,) = re.findall('name="next" value="([^"]*)"', form.text)
    entered = guarded.ask("POST", "/login", urlencode({"token": TOKEN, "next": unescape(to)}), **FORM)
    assert (entered.status, entered.headers["location"]) == (303, path)


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "/x\r\nset-cookie: a=b", "x"]
)
def test_the_form_leads_to_no_other_site(guarded, to: str):
    entered = guarded.ask("POST", "/login", urlencode({"token": TOKEN, "next": to}), **FORM)
    assert (entered.status, entered.headers["location"]) == (303, "/")
    assert entered.headers["set-cookie"].startswith(COOKIE)


@pytest.mark.parametrize("body", [b"", b"token=wrong", b"\xff", b"token=" + b"x" * 100_000, b"&" * 5000])
def test_a_form_without_the_token_gets_no_cookie(guarded, body: bytes):
    start = time.monotonic()
    answer = guarded.ask("POST", "/login", body, **FORM)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers
    assert time.monotonic() - start > 0.4


def test_what_stands_in_the_address_of_the_form_is_text(guarded):
    form = guarded.ask("GET", "/login?" + urlencode({"next": '"><script>alert(1)</script>'}))
    assert "<script" not in form.text


def test_the_form_says_which_token_is_meant_and_has_the_style_of_the_pages(guarded):
    form = guarded.ask("GET", "/login")
    assert "counterpoint serve" in form.text
    assert "COUNTERPOINT_TOKEN" in form.text
    (style,) = re.findall(r'href="(/static/[^"]+)"', form.text)
    assert guarded.ask("GET", style).headers["content-type"] == "text/css; charset=utf-8"
    assert guarded.ask("GET", "/static/live.js").status == 401
    assert guarded.ask("GET", "/static/pages.css/../live.js").status == 401


@pytest.mark.parametrize("path", ["/", "/runs/x", "/compare", "/events", "/healthz"])
def test_a_page_that_is_posted_to_says_so_in_a_line(receiver, path: str):
    answer = receiver.ask("POST", path)
    assert (answer.status, set(answer.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == "POST is not taken here: this can only be read, with GET\n"


def test_a_head_that_never_ends_is_cut_off(receiver, monkeypatch):
    monkeypatch.setattr(listening, "HEAD_S", 0.2)
    for begun in (b"", b"GET / HTTP/1.1\r\nHost: local"):
        connection = socket.create_connection(("127.0.0.1", receiver.port), timeout=HANGS_S)
        with connection, suppress(ConnectionError):  # where the end came before the half of a head
            connection.sendall(begun)
            assert connection.recv(100) == b""


def test_a_connection_that_is_idle_is_not_cut_off(receiver, monkeypatch):
    with closing(http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=HANGS_S)) as connection:
        for head_s in (HANGS_S, 0.2):
            monkeypatch.setattr(listening, "HEAD_S", head_s)  # counts from the end of the next answer on
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        time.sleep(0.4)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"


def test_a_head_over_the_limit_is_400(receiver):
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=HANGS_S) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
