from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from counterpoint.store import Store

HANGS_S = 300.0
"""So long a test waits for what has to come, however slow or busy the machine is."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class Serving:
    """A real server on loopback, and one request at a time to it."""

    def __init__(self, port: int, store: Any, stop: Callable[[], None]) -> None:
        self.port = port
        self.stop = stop
        """Asks the server to stop, as a signal would, and does not wait."""
        self.store = store
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request over a connection of its own; ``content_type=`` becomes ``content-type``."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS_S)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()


@contextmanager
def served(store: Any, **options: Any) -> Iterator[Serving]:
    """A server over a store, up until the end of the ``with``."""
    pytest.importorskip("fastapi")
    from counterpoint.view.server.app import create_app
    from counterpoint.view.server.listening import bind, server

    app = create_app(store, **options)
    running = server(app)
    sockets = bind("127.0.0.1", 0)
    thread = threading.Thread(target=running.run, args=(sockets,))
    thread.start()

    def stop() -> None:
        app.state.stopping.set()
        running.should_exit = True

    try:
        yield Serving(sockets[0].getsockname()[1], store, stop)
    finally:
        stop()
        thread.join()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """Starts servers: ``serving(token=..., limits=...)`` over a new store, or over the one that is given."""
    with ExitStack() as stack:

        def start(store: Any = None, **options: Any) -> Serving:
            if store is None:
                store = stack.enter_context(Store(tmp_path / "store.db"))
            return stack.enter_context(served(store, **options))

        yield start


class Kept:
    """A store of one list, which fails as it is told."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.spans: list[Any] = []
        self.fault: Exception | None = None
        self.faults = 0
        self.entered = threading.Event()
        """Set once spans have come, whether they are let through or not."""
        self.gate = threading.Event()
        self.gate.set()

    def add_spans(self, spans: list[Any], *, wait_s: float) -> None:
        self.entered.set()
        assert self.gate.wait(HANGS_S)
        if self.fault is not None and self.faults:
            self.faults -= 1
            raise self.fault
        self.spans += spans

    def is_at_it(self) -> bool:
        """Waits for spans to come."""
        return self.entered.wait(HANGS_S)

    def version(self) -> int:
        return len(self.spans)

    def check(self) -> None:
        """It is whole."""


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture(scope="module")
def servings() -> Iterator[Callable[..., Serving]]:
    """Starts servers that all tests of a module share, over a `Kept`."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(served(Kept(), **options))


@pytest.fixture(scope="module")
def _receiver(servings: Callable[..., Serving]) -> Serving:
    return servings()


@pytest.fixture
def receiver(_receiver: Serving) -> Serving:
    """One server for many tests, as it is without options; its store is a `Kept` and empty."""
    _receiver.store.clear()
    return _receiver
