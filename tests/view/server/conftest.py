from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from counterpoint.store import Store


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class Serving:
    """A real server on loopback, and one request at a time to it."""

    def __init__(self, port: int, store: Any) -> None:
        self.port = port
        self.store = store
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request over a connection of its own; ``content_type=`` becomes ``content-type``."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """Starts servers: ``serving(token=..., limits=...)`` over a new store, or over the one that is given."""
    pytest.importorskip("fastapi")
    from counterpoint.view.server.app import create_app
    from counterpoint.view.server.listening import bind, server

    with ExitStack() as stack:

        def start(store: Any = None, **options: Any) -> Serving:
            if store is None:
                store = stack.enter_context(Store(tmp_path / "store.db"))
            app = create_app(store, **options)
            running = server(app)
            sockets = bind("127.0.0.1", 0)
            thread = threading.Thread(target=running.run, args=(sockets,))
            thread.start()

            def stop() -> None:
                app.state.stopping.set()
                running.should_exit = True
                thread.join()

            stack.callback(stop)
            return Serving(sockets[0].getsockname()[1], store)

        yield start
