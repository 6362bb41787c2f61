"""The deadline of a call whose connection is encrypted, or goes by a proxy."""

from __future__ import annotations

import select
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import ModelError
from counterpoint.models import _bounded
from counterpoint.models.chat_http import ChatHTTP

BODY = b'{"choices": [{"message": {"content": "7"}}]}'
SEVEN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
ASKED = [{"role": "user", "content": "3 + 4?"}]


def listen(serve: Callable[[socket.socket], None]) -> socket.socket:
    """A loopback server that has a thread serve each connection until its end."""
    listening = socket.create_server(("127.0.0.1", 0))

    def one(caller: socket.socket) -> None:
        with suppress(OSError), caller:
            serve(caller)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=one, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listening


def drip(caller: socket.socket) -> None:
    """Headers without end."""
    caller.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
    while True:
        caller.sendall(b"a")
        time.sleep(0.02)


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's side of TLS, whose certificate the environment names."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl, for a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize(
    ("by_proxy", "dripping"),
    [(False, ""), (True, ""), (False, "endpoint"), (True, "endpoint"), (True, "proxy")],
)
def test_an_encrypted_call_is_answered_and_ends_at_the_timeout(
    certified: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, by_proxy: bool, dripping: str
):
    def endpoint(caller: socket.socket) -> None:
        with certified.wrap_socket(caller, server_side=True) as secured:
            while secured.recv(1 << 16):
                if dripping == "endpoint":
                    drip(secured)
                secured.sendall(SEVEN)

    def proxy(caller: socket.socket) -> None:
        caller.recv(1 << 16)
        if dripping == "proxy":
            drip(caller)
        with socket.create_connection(serving.getsockname()) as further:
            caller.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            ends: dict[Any, socket.socket] = {caller: further, further: caller}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    if not (said := end.recv(1 << 16)):
                        return
                    ends[end].sendall(said)

    with closing(listen(endpoint)) as serving, closing(listen(proxy)) as between:
        if by_proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{between.getsockname()[1]}")
        url = f"https://localhost:{serving.getsockname()[1]}/v1"
        model = ChatHTTP("m", url, timeout_s=0.5 if dripping else 60, retries=0)
        if not dripping:
            assert [model(ASKED).text for _ in range(2)] == ["7", "7"]
            return
        begun = time.monotonic()
        with pytest.raises(ModelError, match="no whole answer within"):
            model(ASKED)
        assert time.monotonic() - begun < 60, "it would drip for ever"


def test_a_connection_whose_time_is_up_before_it_is_encrypted_is_closed():
    deadline = _bounded._Deadline(timeout_s=60)
    deadline.begun -= 61
    ours, theirs = socket.socketpair()
    with theirs, pytest.raises(_bounded.Unbounded, match="no whole answer within 60 s"):
        _bounded._Connection(ours, deadline).start_tls(ssl.create_default_context())
    assert ours.fileno() == -1
