"""``counterpoint serve``: take spans from any exporter, keep and score them, show them in a browser."""

from __future__ import annotations

import importlib
import ipaddress
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import say
from counterpoint.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    import socket

    from counterpoint.store import Store

SCORE_AFTER_S = 1.0
"""Scoring starts when the server is up: loading it takes about as long as all the rest."""
SHORT = 16
"""Characters of a token below which it is said that guessing it may be feasible."""


def serve(
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Default: 4318, or the next free one; 0: any free."
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="Where to listen; other than loopback wants a token."),
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="T",
            envvar="COUNTERPOINT_TOKEN",
            show_envvar=False,
            help="What exporters and browsers have to show; better given as COUNTERPOINT_TOKEN.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A further name of this machine. Repeatable."),
    ] = None,
    store: Annotated[
        Path | None, typer.Option("--store", metavar="FILE", help="Where everything is kept.")
    ] = None,
    quiet_after: Annotated[
        float,
        typer.Option(
            "--quiet-after", metavar="SECONDS", min=0, help="Score a run without spans for so long."
        ),
    ] = 5.0,
    metrics: options.Metrics = None,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """Take spans from any exporter, keep and score them, and show them in a browser."""
    token = None if token is None else token.strip()
    if token == "":
        raise UsageError("the token is empty: leave it out, or choose one")
    host = host.strip("[]")
    if not is_loopback(host) and token is None:
        raise UsageError(
            f"--host {host} lets other machines in: give a token as well, as COUNTERPOINT_TOKEN or --token"
        )
    for name in allow_host or ():
        if not re.fullmatch(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?", name):
            raise UsageError(
                f"--allow-host {name[:100]!r} is no name of a host: give it without scheme, port and path"
            )
    check_extra()
    if metrics:
        from counterpoint.metrics import metrics_of

        for name in metrics:
            metrics_of(name)
    from counterpoint.store import Store, default_path
    from counterpoint.view.server.listening import bind

    sockets = bind(host, port)
    try:
        with Store(store or default_path(), keep_secrets=keep_secrets) as opened:
            if not quiet:
                tell(sockets, port, host, token, opened)
            with stoppable(quiet):
                serve_until_stopped(
                    opened, sockets,
                    token=token, hosts=[host, *(allow_host or ())],
                    quiet_s=quiet_after, metrics=metrics or None, keep_secrets=keep_secrets,
                )  # fmt: skip
    finally:
        for one in sockets:
            one.close()


def check_extra() -> None:
    """Raises MissingExtra where the packages of the server are not installed."""
    try:
        for name in ("fastapi", "uvicorn", "opentelemetry.proto.trace.v1.trace_pb2"):
            importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra("counterpoint serve", "serve") from error


def is_loopback(host: str) -> bool:
    """Is it an address that only this machine reaches?"""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def tell(sockets: list[socket.socket], port: int | None, host: str, token: str | None, store: Store) -> None:
    """Where the pages are, what an exporter needs, where everything is kept; never the token."""
    from counterpoint.view.server.listening import DEFAULT_PORT

    bound = sockets[0].getsockname()[1]
    if port is None and bound != DEFAULT_PORT:
        say(f"port {DEFAULT_PORT} is taken, so this is {bound}: exporters have to be told")
    name = "localhost" if host in ("127.0.0.1", "::1", "0.0.0.0", "::") else host
    url = f"http://{f'[{name}]' if ':' in name else name}:{bound}"
    say(f"pages: {url}/")
    say(f"export OTEL_EXPORTER_OTLP_ENDPOINT={url}")
    if token is not None:
        say('export OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20$COUNTERPOINT_TOKEN"')
        if len(token) < SHORT:
            say(f"the token is shorter than {SHORT} characters: others may guess it")
    say(f"store: {store.path}")


def serve_until_stopped(
    store: Store,
    sockets: list[socket.socket],
    *,
    token: str | None,
    hosts: list[str],
    quiet_s: float,
    metrics: list[str] | None,
    keep_secrets: bool,
) -> None:
    """The receiver and the pages here, scoring in a process of its own, until a signal comes."""
    from counterpoint.view.server.app import create_app
    from counterpoint.view.server.listening import server

    app = create_app(store, token=token, hosts=hosts, keep_secrets=keep_secrets)

    def score() -> None:
        if not app.state.stopping.wait(SCORE_AFTER_S):
            from counterpoint.engine.live import Scorer

            scorer = Scorer(store.path, quiet_s=quiet_s, metrics=metrics, keep_secrets=keep_secrets)
            scorer.start()
            app.state.stopping.wait()
            scorer.stop()

    scoring = threading.Thread(target=score, name="scoring")
    scoring.start()
    try:
        server(app).run(sockets)
    finally:
        for one in (signal.SIGINT, signal.SIGTERM):  # it is about to end
            signal.signal(one, signal.SIG_IGN)
        app.state.stopping.set()
        scoring.join()


@contextmanager
def stoppable(quiet: bool) -> Iterator[None]:
    """Ctrl-C and SIGTERM end what is within, and are the way it is meant to end."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        yield
    if not quiet:
        say("stopped")
