"""The client of OpenAI-compatible endpoints against the scripted server: faults acted out, waits recorded."""

from __future__ import annotations

import gzip
import html
import json
import logging
import re
import socket
import threading
import time
import traceback
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest

from counterpoint.contracts import Reply
from counterpoint.errors import (
    AccessRefused,
    CounterpointError,
    ModelError,
    ModelUnavailable,
    RequestRefused,
    UsageError,
)
from counterpoint.models import chat_http
from counterpoint.models.chat_http import ChatHTTP
from counterpoint.models.scripted import Fault, ScriptedServer, Turn, scripted_server

QUESTION = [{"role": "user", "content": "What is 3 + 4?"}]
KEY = "counterpoint-test-key-0123456789"
FOREVER_S = 60.0
"""Far longer than any timeout here, however slow the machine is."""


class Waits(list[float]):
    """Records pauses in place of making them."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


def asked(server: ScriptedServer, waits: Waits, **settings: Any) -> Reply:
    """The reply of a client with ``settings`` that is closed afterwards."""
    model = ChatHTTP("m", server.base_url, wait=waits, **settings)
    try:
        return model(QUESTION)
    finally:
        model.close()


def until(true: Callable[[], bool]) -> None:
    """Waits for a server that may be slower than a client that gave up."""
    end = time.monotonic() + FOREVER_S
    while not true() and time.monotonic() < end:
        time.sleep(0.01)


def failure(server: ScriptedServer, waits: Waits, **settings: Any) -> str:
    with pytest.raises(ModelError) as raised:
        asked(server, waits, **settings)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def seven() -> Iterator[ScriptedServer]:
    with scripted_server("7") as server:
        yield server


def test_a_reply_has_text_tokens_model_and_finish_reason(seven, waits):
    assert asked(seven, waits) == Reply("7", tokens_in=6, tokens_out=1, model="m", finish_reason="stop")
    assert waits == []


def test_settings_that_were_asked_for_are_sent_and_others_are_not(seven, waits):
    asked(seven, waits)
    asked(seven, waits, temperature=0.0, max_tokens=5, seed=0, extra={"top_p": 0.9, "stop": ["\n"]})
    plain, set_up = (request.body for request in seven.requests)
    assert plain == {"model": "m", "messages": QUESTION}
    assert set_up == {**plain, "temperature": 0.0, "max_tokens": 5, "seed": 0, "top_p": 0.9, "stop": ["\n"]}


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault.rate_limited(0), "HTTP 429: scripted fault"),
        (Fault.server_error(), "HTTP 500: scripted fault"),
        (Fault(status=503, body="<html>busy</html>"), "HTTP 503"),
        (Fault.dropped(), "the connection failed: peer closed connection"),
        (Fault(drop_after=0), "the connection failed: "),
        (Fault.garbage(), "the answer is no JSON: {"),
        (Fault.garbage("[]"), "the answer is no chat completion: []"),
        (Fault.garbage('{"choices": [null]}'), "the answer is no chat completion"),
        (Fault.empty_choices(), "the answer has no choices"),
        pytest.param(Fault.stall(600), "no whole answer within 2 s", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_what_may_pass_is_tried_again_and_named_if_it_does_not(fault, told, waits):
    timeout_s = 2 if fault.stall_s else FOREVER_S  # what is no fault is to be in time on any machine
    with scripted_server([fault, "7", fault, fault]) as server:
        assert asked(server, waits, timeout_s=timeout_s, retries=1).tokens_out == 1
        message = failure(server, waits, timeout_s=timeout_s, retries=1)
        until(lambda: len(server.requests) == 4)
    assert told in message
    assert message.startswith("model 'm' at 127.0.0.1:")
    assert message.endswith("(tried 2 times)")
    assert len(server.requests) == 4
    assert len(waits) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_will_not_pass_is_not_tried_again(status, waits):
    with scripted_server(lambda _: Fault(status=status)) as server:
        assert f"HTTP {status}: scripted fault" in failure(server, waits)
    assert len(server.requests) == 1


def test_an_exhausted_quota_is_not_tried_again(waits):
    body = '{"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}'
    with scripted_server(lambda _: Fault(status=429, body=body)) as server:
        assert "HTTP 429: You exceeded your quota." in failure(server, waits)
    assert len(server.requests) == 1


def test_a_wait_is_as_long_as_the_server_asks(waits):
    with scripted_server([Fault.rate_limited(3), Fault.rate_limited(0.25), "7"]) as server:
        asked(server, waits)
    assert 3 <= waits[0] <= 3.5
    assert 0.25 <= waits[1] <= 0.75


def test_a_wait_that_is_too_long_is_a_failure_that_says_so(waits):
    with scripted_server([Fault.rate_limited(3600)]) as server:
        assert "it asks to wait 3600 s" in failure(server, waits)
    assert waits == []


def test_waits_double_up_to_a_bound_and_jitter(waits):
    with scripted_server(lambda _: Fault.server_error()) as server:
        failure(server, waits, retries=8)
    bounds = [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert all(bound / 2 <= pause <= bound for pause, bound in zip(waits, bounds, strict=True))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(0)}, 0.0),
        ({"retry-after": "Fri, 31 Dec 99999999999999999999 23:59:59 GMT"}, None),
    ],
    ids=str,
)
def test_retry_after_is_read_in_all_its_forms(headers, seconds):
    assert chat_http._retry_after(headers) == seconds


def test_retry_after_may_be_a_date(monkeypatch):
    monkeypatch.setattr(chat_http.time, "time", lambda: 1000.0)
    assert chat_http._retry_after({"retry-after": formatdate(1030)}) == 30


def test_a_refusal_is_a_reply(waits):
    with scripted_server(Turn(refusal="I will not.", tokens_out=3)) as server:
        reply = asked(server, waits)
    assert (reply.text, reply.finish_reason, reply.tokens_out) == ("I will not.", "refusal", 3)


def test_a_reply_that_was_cut_short_says_so(waits):
    with scripted_server(Turn("The ans", finish_reason="length")) as server:
        assert asked(server, waits).finish_reason == "length"


@pytest.mark.parametrize("wrong", ["-1", "2.5", '"7"', "true", "null", "[1]"])
def test_tokens_that_cannot_be_are_unknown(wrong, waits):
    body = f'{{"choices": [{{"message": {{"content": "7"}}}}], "usage": {{"prompt_tokens": {wrong}}}}}'
    with scripted_server(Fault.garbage(body)) as server:
        assert asked(server, waits) == Reply("7")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("null", ""),
        ('[{"type": "text", "text": "3"}, {"type": "image"}, "?", {"text": null}, {"text": "4"}]', "3\n4"),
        ("7", ""),
    ],
)
def test_content_of_any_form_is_read(content, text, waits):
    body = f'{{"choices": [{{"message": {{"content": {content}}}}}], "usage": [], "model": 3}}'
    with scripted_server(Fault.garbage(body)) as server:
        assert asked(server, waits) == Reply(text)


def test_tokens_of_attempts_that_failed_are_not_counted(waits):
    with scripted_server([Fault.dropped(), Fault.server_error(), "7"]) as server:
        reply = asked(server, waits)
    assert (reply.tokens_in, reply.tokens_out) == (server.tokens_in, server.tokens_out) == (6, 1)


def test_no_endpoint_there_is_an_error_that_names_it(waits):
    model = ChatHTTP("m", "http://127.0.0.1:9/v1", retries=0, wait=waits)
    with pytest.raises(ModelError, match=r"model 'm' at 127.0.0.1:9: the connection failed: .*refused"):
        model(QUESTION)
    model.close()


@pytest.mark.parametrize(
    ("base_url", "told"),
    [
        ("localhost:8000/v1", "no http"),
        ("ftp://host/v1", "no http"),
        ("http:///v1", "no http"),
        ("http://me:hunter2@host/v1", "holds a login"),
        ("https://host/v1?key=hunter2", "holds a login or a query"),
    ],
)
def test_a_base_url_that_cannot_be_used_is_named_without_its_secrets(base_url, told):
    with pytest.raises(UsageError, match=told) as raised:
        ChatHTTP("m", base_url)
    assert "hunter2" not in str(raised.value)


def test_settings_that_are_not_to_be_changed_are_refused():
    with pytest.raises(UsageError, match="model, stream"):
        ChatHTTP("m", "http://127.0.0.1:9/v1", extra={"stream": True, "model": "other", "top_p": 1})


def test_openai_itself_needs_a_key_and_the_error_names_the_variable():
    with pytest.raises(ModelError, match="no key: set OPENAI_API_KEY"):
        ChatHTTP("gpt")


@pytest.mark.parametrize("base_url", ["https://api.openai.com/v1", "http://127.0.0.1:9/v1"])
def test_a_variable_that_was_named_and_is_not_set_is_an_error_everywhere(base_url):
    with pytest.raises(ModelError, match="variable MY_KEY that was named for it is not set"):
        ChatHTTP("gpt", base_url, api_key_env="MY_KEY")


@pytest.mark.parametrize(
    "key", ["sk-proj-abc", "a/b+c==", "ab cd", "", "gsk_abcdefghij0123456789", "d41d8cd98f00b204", "HUNTER2"]
)
def test_a_key_in_place_of_a_variables_name_is_refused_and_not_shown(key):
    with pytest.raises(CounterpointError, match="not repeated here") as raised:
        ChatHTTP("m", "http://127.0.0.1:9/v1", api_key_env=key)
    assert not key or key not in str(raised.value)


def test_a_key_with_impossible_characters_is_not_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\u2019")
    with pytest.raises(ModelError, match="OPENAI_API_KEY holds characters") as raised:
        ChatHTTP("gpt")
    assert KEY not in str(raised.value)


def test_the_key_is_sent_and_shown_nowhere(monkeypatch, caplog, waits):
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    sent = []

    def echo(messages: Any) -> Fault:
        return Fault(status=401, body=f'{{"error": {{"message": "Incorrect API key provided: {KEY}"}}}}')

    with scripted_server(echo) as server:
        handler = server._http.RequestHandlerClass
        serve = handler.do_POST
        monkeypatch.setattr(
            handler, "do_POST", lambda self: (sent.append(self.headers["Authorization"]), serve(self))
        )
        model = ChatHTTP("m", server.base_url, api_key_env="MY_KEY", wait=waits)
        with pytest.raises(ModelError) as raised:
            model(QUESTION)
        model.close()
    assert sent == [f"Bearer {KEY}"]
    told = "".join(traceback.format_exception(raised.value))
    for shown in (repr(model), str(model.settings), told, caplog.text, str(server.requests[0].headers)):
        assert KEY not in shown


def test_two_hundred_calls_at_once_lose_none(waits):
    with scripted_server(lambda messages: messages[0]["content"], latency_s=0.05) as server:
        model = ChatHTTP("m", server.base_url, wait=waits)
        with ThreadPoolExecutor(200) as pool:
            replies = list(pool.map(lambda n: model([{"role": "user", "content": str(n)}]).text, range(400)))
        model.close()
    assert replies == [str(n) for n in range(400)]
    assert len(server.requests) == 400
    assert waits == []


def test_what_was_cached_reasoned_and_charged_is_read(waits):
    turn = Turn("7", tokens_in=100, tokens_out=30, tokens_cached=64, tokens_reasoning=20, cost_usd=0.00125)
    with scripted_server(turn) as server:
        reply = asked(server, waits)
    assert (reply.tokens_cached, reply.tokens_reasoning, reply.cost_usd) == (64, 20, 0.00125)


@pytest.mark.parametrize(
    ("usage", "cached", "reasoning", "cost"),
    [
        ('{"prompt_tokens": 9, "prompt_cache_hit_tokens": 5}', 5, None, None),
        ('{"prompt_tokens": 9, "prompt_tokens_details": null, "prompt_cache_hit_tokens": 5}', 5, None, None),
        ('{"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 10}}', None, None, None),
        ('{"prompt_tokens": 9, "prompt_tokens_details": [9]}', None, None, None),
        ('{"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": -1}}', None, None, None),
        ('{"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 9}}', None, 9, None),
        ('{"cost": 0}', None, None, 0.0),
        ('{"cost": -0.1}', None, None, None),
        ('{"cost": "0.1"}', None, None, None),
        ('{"cost": true}', None, None, None),
        ('{"cost": 1e999}', None, None, None),
        ('{"cost": NaN}', None, None, None),
        (f'{{"cost": 1{"0" * 400}}}', None, None, None),
        ('{"prompt_tokens": 99999999999999999999999999}', None, None, None),
    ],
)
def test_parts_of_the_usage_that_cannot_be_are_unknown(usage, cached, reasoning, cost, waits):
    body = f'{{"choices": [{{"message": {{"content": "7"}}}}], "usage": {usage}}}'
    with scripted_server(Fault.garbage(body)) as server:
        reply = asked(server, waits)
    assert (reply.tokens_cached, reply.tokens_reasoning, reply.cost_usd) == (cached, reasoning, cost)
    assert reply.tokens_in in (9, None)


def test_a_reply_that_quotes_the_key_does_not_hold_it(waits, monkeypatch):
    key = "my-own-kind-of-key-8471"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with scripted_server(Turn(f"Your key is {key}.", model=f"m-{key}", finish_reason=key)) as server:
        reply = asked(server, waits)
    assert reply.text == "Your key is [secret:key]."
    assert key not in repr(reply)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_timeout_that_cannot_be_is_named(seconds):
    with pytest.raises(UsageError, match="timeout is a number of seconds above 0"):
        ChatHTTP("m", base_url="http://127.0.0.1:9/v1", timeout_s=seconds)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(status=401), ModelUnavailable),
        (Fault(status=402), ModelUnavailable),
        (Fault(status=403), AccessRefused),
        (
            Fault(status=403, body='{"error": {"message": "flagged", "metadata": {"reasons": ["x"]}}}'),
            RequestRefused,
        ),
        (
            Fault(status=429, body='{"error": {"message": "no", "code": "insufficient_quota"}}'),
            ModelUnavailable,
        ),
        (Fault.rate_limited(3600), ModelUnavailable),
        (Fault.rate_limited(1), ModelError),
        (Fault(status=400), RequestRefused),
        (Fault(status=413), RequestRefused),
        (Fault(status=422), RequestRefused),
        (Fault(status=404), ModelError),
        (Fault.server_error(), ModelError),
    ],
)
def test_an_endpoint_that_will_answer_no_further_call_is_told_from_one_call_that_failed(waits, fault, kind):
    with scripted_server(fault) as server, pytest.raises(ModelError) as raised:
        asked(server, waits, retries=1)
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("ALL_PROXY", "socks5://me:hunter2@proxy:1080", "ALL_PROXY: SOCKS proxies need the package socksio"),
        ("HTTP_PROXY", "weird://me:hunter2@proxy:1", "HTTP_PROXY: Unknown scheme"),
        (
            "SSL_CERT_FILE",
            "/nope.pem",
            "SSL_CERT_FILE=/nope.pem cannot be used for .*: No such file",
        ),
    ],
)
def test_an_environment_that_lets_no_connection_be_made_is_named(monkeypatch, variable, value, told):
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=told) as raised:
        ChatHTTP("m", "http://127.0.0.1:9/v1")
    assert "hunter2" not in str(raised.value)
    assert "\n" not in str(raised.value)


class Endless:
    """A loopback server whose answers go on for ever: ``chunk`` and a pause, again and again."""

    def __init__(
        self,
        chunk: bytes,
        pause_s: float,
        status: int = 200,
        head: bytes = b"",
        *,
        begin: bytes | None = None,
    ) -> None:
        self.begin = b"HTTP/1.1 %d OK\r\n%s\r\n" % (status, head) if begin is None else begin
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.chunk, self.pause_s = chunk, pause_s
        self.requests = 0
        threading.Thread(target=self.serve, daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.listening.getsockname()[1]}/v1"

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self.listening.accept()
                self.requests += 1
                with caller, suppress(OSError):
                    caller.recv(1 << 16)
                    caller.sendall(self.begin)
                    while True:
                        caller.sendall(self.chunk)
                        time.sleep(self.pause_s)

    def close(self) -> None:
        self.listening.close()


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_drips_ends_at_the_timeout(waits, status):
    server = Endless(b" ", 0.02, status)
    begun = time.monotonic()
    told = failure(server, waits, timeout_s=1, retries=1)
    assert "no whole answer within 1 s (tried 2 times)" in told
    assert time.monotonic() - begun < FOREVER_S
    until(lambda: server.requests == 2)
    assert server.requests == 2
    server.close()


@pytest.mark.parametrize(
    ("status", "head", "told"),
    [
        (200, b"", "the answer is larger than 32 MB"),
        (400, b"", "the answer is larger than 32 MB"),
        (200, b"Content-Encoding: gzip\r\n", "the answer is larger than 32 MB"),
        (200, b"Content-Encoding: br\r\n", "the answer is packed as nobody asked for, and not by gzip"),
    ],
)
def test_an_answer_without_end_is_cut_off_and_not_asked_for_again(waits, status, head, told):
    chunk = gzip.compress(b"0" * 2**26) * 20 if head else b" " * 2**20
    server = Endless(chunk, 0.0, status, head)
    assert told in failure(server, waits)
    assert (server.requests, waits) == (1, [])
    server.close()


@pytest.mark.parametrize("to", [b"/v1/chat/completions", b"file:///etc/passwd", b"gopher://127.0.0.1/"])
def test_an_endpoint_that_redirects_in_a_circle_or_astray_is_not_asked_again(waits, to: bytes):
    head = b"Location: %s\r\nContent-Length: 0\r\nConnection: close\r\n" % to
    server = Endless(b" ", 0.01, 307, head)
    assert "it redirects to where no answer is" in failure(server, waits)
    assert waits == []
    server.close()


def test_a_small_answer_that_unpacks_to_a_large_one_takes_no_memory(waits):
    packed = gzip.compress(b" " * 2**28)
    head = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n" % len(packed)
    server = Endless(packed, 9, 200, head)
    tracemalloc.start()
    try:
        assert "the answer is larger than 32 MB" in failure(server, waits)
        assert tracemalloc.get_traced_memory()[1] < 3 * 2**25
    finally:
        tracemalloc.stop()
        server.close()


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_an_answer_that_is_packed_unasked_is_read(waits, pack):
    packed = pack(b'{"choices": [{"message": {"content": "7"}}]}')
    encoding = b"gzip" if pack is gzip.compress else b"deflate"
    head = b"Content-Encoding: %s\r\nContent-Length: %d\r\n" % (encoding, len(packed))
    server = Endless(packed, 9, 200, head)
    assert asked(server, waits).text == "7"
    server.close()


@pytest.mark.parametrize(
    ("head", "drip"),
    [
        (b"HTTP/1.1 200 OK\r\nX-A: ", b"a"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
)
def test_an_answer_ends_at_the_timeout_whatever_part_of_it_drips(waits, head, drip):
    server = Endless(drip, 0.02, begin=head)
    begun = time.monotonic()
    assert "no whole answer within 0.3 s" in failure(server, waits, timeout_s=0.3, retries=0)
    assert time.monotonic() - begun < FOREVER_S
    server.close()


@pytest.mark.parametrize(("status", "told"), [(404, "HTTP 404: "), (200, "the answer is no JSON: <html>")])
@pytest.mark.parametrize(("path", "hint"), [("/v1", ""), ("", "; does the base URL end in /v1?")])
def test_a_page_for_people_raises_the_question_of_the_base_url(waits, status, told, path, hint):
    page = b"<html>nope</html>"
    server = Endless(page, 1.0, status, b"Content-Type: text/html\r\nContent-Length: %d\r\n" % len(page))
    model = ChatHTTP("m", server.base_url.removesuffix("/v1") + path, retries=0, wait=waits)
    with pytest.raises(ModelError) as raised:
        model(QUESTION)
    model.close()
    server.close()
    assert told in str(raised.value)
    assert str(raised.value).endswith(hint or ("</html>" if status == 200 else "404"))


@pytest.mark.parametrize("key", ['ab/cd+"ef\\gh<i>jk1234567', "AbC/dEf+gHi==9876543210", "it's&so=7"])
def test_a_key_is_hidden_however_a_server_escapes_it(monkeypatch, waits, key):
    monkeypatch.setenv("MY_KEY", key)
    forms = {
        "plain": key,
        "json": json.dumps(key)[1:-1],
        "json in json": json.dumps(json.dumps(key))[3:-3],
        "slashes": json.dumps(key)[1:-1].replace("/", "\\/"),
        "unicode": "".join(f"\\u{ord(one):04X}" for one in key),
        "html": html.escape(key),
        "numbers": "".join(f"&#{ord(one)};" for one in key),
        "url": quote(key, safe=""),
        "small": re.sub("%..", lambda found: found[0].lower(), quote(key)),
        "html of json": html.escape(json.dumps(key)[1:-1]),
    }
    for name, form in forms.items():
        with scripted_server(Fault.garbage(f"bad key <{form}>!")) as server:
            assert "<[secret:key]>!" in failure(server, waits, api_key_env="MY_KEY", retries=0), name
        with scripted_server(f"Your key is <{form}>.") as server:
            assert asked(server, waits, api_key_env="MY_KEY").text == "Your key is <[secret:key]>.", name


def test_lone_surrogates_of_a_message_are_sent_as_replaced(seven, waits):
    model = ChatHTTP("m", seven.base_url, wait=waits)
    assert model([{"role": "user", "content": "half \ud800"}]).text == "7"
    model.close()
    assert seven.requests[0].body["messages"] == [{"role": "user", "content": "half \ufffd"}]
