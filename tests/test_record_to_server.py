"""A run sent to a server is the run in a file; a server that cannot take it is told in one line."""

from __future__ import annotations

import gc
import importlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import counterpoint as cp
from counterpoint.errors import UsageError
from counterpoint.trace import Trace

places = importlib.import_module("counterpoint.record.places")  # counterpoint.record is the function


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Any]:
    """A function that starts the receiver over a store, on loopback."""
    pytest.importorskip("fastapi", reason="extra serve is not installed")
    from counterpoint.store import Store
    from counterpoint.view.server.app import create_app
    from counterpoint.view.server.listening import bind, server

    with ExitStack() as stack:

        def start(**options: Any) -> tuple[str, Store]:
            store = stack.enter_context(Store(tmp_path / "store.db"))
            app = create_app(store, **options)
            running = server(app)
            sockets = bind("127.0.0.1", 0)
            thread = threading.Thread(target=running.run, args=(sockets,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(setattr, running, "should_exit", True)
            stack.callback(app.state.stopping.set)
            return f"http://127.0.0.1:{sockets[0].getsockname()[1]}", store

        yield start


def play(to: Any) -> None:
    labels = {"task_id": "bridges", "seed": 1}
    with cp.record("walk", task="How many?", gold="4", system="pair", labels=labels, to=to) as run:
        call = cp.Call("c1", "map", '{"of": "river"}', result="4")
        first = run.step("walker", "Four. ✈", calls=[call], tokens_in=3, cost_usd=0.5, ended_at=2e9)
        run.step("reader", "Yes, four. ✈", heard=[first], role="reads", prompt="Four. ✈", started_at=2e9)
        run.step("judge", "4", kind="decision", round=3, answer="4", error="late", ended_at=2e9 + 0.5)
        run.answer, run.correct = "4", True


def without_times(trace: Trace) -> Trace:
    """The trace without what differs from run to run, or says which way it came."""
    steps = tuple(replace(step, started_at=None, ended_at=None) for step in trace.steps)
    labels = {key: trace.labels[key] for key in ("task_id", "seed")}
    return replace(trace, id="", source="", labels=labels, steps=steps)


def test_a_run_sent_to_a_server_is_the_run_in_a_file(tmp_path: Path, serving: Any):
    from counterpoint.engine.live import read_run

    url, store = serving()
    play(tmp_path / "recording.jsonl")
    play(url)
    (run,) = store.runs().rows
    ((sent,), wrong) = read_run(store, run.id)
    (written,) = cp.read(tmp_path / "recording.jsonl", on_error="raise")
    assert without_times(sent) == without_times(written)
    assert (sent.labels["run"], sent.steps[0].ended_at, wrong, run.spans) == ("walk", 2e9, [], 5)


def test_what_was_sent_so_far_is_a_run_that_is_going_on(serving: Any):
    from counterpoint.engine.live import read_run

    url, store = serving()
    with cp.record("walk", to=f"{url}/v1/traces") as run:
        run.step("walker", "Four.")
        ((trace,), _) = read_run(store, store.runs().rows[0].id)
    assert [step.text for step in trace.steps] == ["Four."]
    assert trace.warnings == ("the recording has no end: the run was cut off or is still going on",)


def test_a_server_that_wants_a_token_gets_it_from_the_environment(serving: Any, monkeypatch: Any):
    url, store = serving(token="a token of some length")
    with pytest.raises(UsageError, match="did not take the event: 401"):
        play(url)
    monkeypatch.setenv("COUNTERPOINT_TOKEN", "a token of some length")
    play(url)
    assert store.runs().total == 1


def test_a_server_that_is_not_there_is_told_before_the_team_begins():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(UsageError, match=r"cannot be reached: .* is `counterpoint serve` running"):
            play(url)


@contextmanager
def answering(*answers: tuple[int, bytes], port: int = 0) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these answers in turn; its address, and the bodies that it was sent.

    In place of an answer of status 0 it closes the connection.
    """
    left, bodies = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = left.pop(0)
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = status == 200  # without a word: the next request finds that out

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", bodies
        finally:
            server.shutdown()
            thread.join()


def test_a_busy_server_is_asked_again_and_a_closed_connection_is_opened_again():
    with (
        answering((200, b""), (429, b"wait"), (503, b"wait"), (200, b"{}"), (200, b"{}")) as (url, bodies),
        cp.record("r", to=url) as run,
    ):
        run.step("a", "one")
    assert len(bodies) == 5
    assert bodies[1] == bodies[2] == bodies[3]


def test_a_connection_that_breaks_is_made_anew(monkeypatch: Any):
    monkeypatch.setattr(places, "AWAY_S", 600.0)  # the machine may be slow
    waits: list[float] = []
    monkeypatch.setattr(places.time, "sleep", waits.append)
    with (
        answering((200, b""), *[(0, b"")] * 4, (200, b""), (200, b"")) as (url, bodies),
        cp.record("r", to=url) as run,
    ):
        run.step("a", "one")
    assert len(set(bodies[1:6])) == 1
    assert [wait for wait in waits if wait][:3] == pytest.approx([0.1, 0.3, 0.7])


def test_a_server_that_was_away_gets_what_was_said_meanwhile(monkeypatch: Any):
    with ExitStack() as stack:
        with answering((200, b"")) as (url, _):
            run = cp.record("r", to=url).__enter__()
        back: list[list[bytes]] = []

        def come_back(seconds: float) -> None:
            if seconds and not back:
                port = int(url.rpartition(":")[2])
                back.append(stack.enter_context(answering((200, b""), (200, b""), port=port))[1])

        monkeypatch.setattr(places, "AWAY_S", 600.0)  # the machine may be slow
        monkeypatch.setattr(places.time, "sleep", come_back)
        run.step("a", "one")
        run.__exit__(None, None, None)
    assert ["one" in body.decode() for body in back[0]] == [True, False]


def test_a_server_that_stays_away_is_told_and_hides_no_error_of_the_block(monkeypatch: Any):
    monkeypatch.setattr(places, "AWAY_S", 0.05)
    with answering((200, b"")) as (url, _):
        run = cp.record("r", to=url).__enter__()
    with pytest.raises(UsageError, match=r"cannot be reached: .* is `counterpoint serve` running") as caught:
        run.step("a", "one")
    run.__exit__(UsageError, caught.value, None)
    assert len(caught.value.__notes__) == 1


def test_a_server_that_refuses_the_first_event_is_left_with_its_connection_closed():
    with (
        answering((400, b"no")) as (url, _),
        pytest.raises(UsageError, match="did not take the event: 400"),
        cp.record("r", to=url),
    ):
        pass
    gc.collect()  # a socket that is still open warns now, and a warning fails the test


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, b"no request\nof OTLP", "400 no request of OTLP"),
        (200, b'{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too large"}}', "too large"),
        (429, b"wait", "429 wait"),
        (200, b"<h1>Welcome!</h1>", "200 <h1>Welcome!</h1>"),
    ],
)
def test_a_server_that_does_not_take_an_event_is_told(
    status: int, body: bytes, message: str, monkeypatch: Any
):
    monkeypatch.setattr(places, "PATIENCE_S", -1.0)
    with (
        answering((200, b""), (status, body), (200, b"")) as (url, _),
        cp.record("r", to=url) as run,
        pytest.raises(UsageError, match=f"did not take the event: .*{message}"),
    ):
        run.step("a", "one")
