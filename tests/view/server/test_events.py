"""Server-sent events: told of what changed, and of nothing else; bounded; gone when the server is."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time

import pytest
from pages_world import put, score, trace

from counterpoint.errors import UsageError
from counterpoint.view.server import events


class Stream:
    """An open stream of events, read line by line."""

    def __init__(self, served, path="/events", **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=300)
        self.connection.request("GET", path, headers=headers)
        self.response = self.connection.getresponse()

    def event(self):
        """The fields of the next event, or the comment; None at the end."""
        found = {}
        while line := self.response.readline().decode():
            if line == "\n":
                return found
            name, _, value = line.rstrip("\n").partition(":")
            found[name or "comment"] = value.strip()
        return found or None

    def close(self):
        self.response.close()
        self.connection.close()


@pytest.fixture
def listen():
    opened = []

    def start(*given, **headers):
        opened.append(Stream(*given, **headers))
        return opened[-1]

    yield start
    for stream in opened:
        stream.close()


def mark_of(served, path="/"):
    """The address of a page's stream."""
    text = served.ask("GET", path, accept="text/html").text
    return re.search(r'data-events="([^"]+)"', text)[1].replace("&amp;", "&")


def test_a_page_is_told_when_something_changed_and_not_before(serving, listen):
    served = serving()
    put(served.store, trace("a"))
    stream = listen(served, mark_of(served))
    assert stream.response.getheader("content-type").startswith("text/event-stream")
    assert stream.event() == {"retry": "2000"}
    put(served.store, trace("b"))
    told = stream.event()
    assert told["event"] == "change"
    assert json.loads(told["data"]) == {"mark": told["id"]}
    assert mark_of(served) == f"/events?since={told['id']}"


def test_what_changed_between_the_page_and_its_stream_is_told_at_once(serving, listen):
    served = serving()
    before = mark_of(served)
    put(served.store, trace("a"))
    stream = listen(served, before)
    assert stream.event() == {"retry": "2000"}
    assert stream.event()["event"] == "change"


def test_the_last_event_that_came_is_not_told_again(serving, listen):
    served = serving()
    before = mark_of(served)
    put(served.store, trace("a"))
    first = listen(served, before)
    first.event()
    seen = first.event()["id"]
    first.close()
    stream = listen(served, before, **{"Last-Event-ID": seen})
    assert stream.event() == {"retry": "2000"}
    put(served.store, trace("b"))
    assert stream.event()["id"] != seen


def test_the_page_of_a_run_hears_of_this_run_only(serving, listen):
    served = serving()
    put(served.store, trace("a"), trace("b"))
    stream = listen(served, mark_of(served, "/runs/a"))
    both = listen(served, mark_of(served, "/compare?a=a&b=b"))
    assert stream.event() == both.event() == {"retry": "2000"}
    score(served.store, "b")
    assert both.event()["id"] == "1-0-0-waiting_1-1-0-scored"
    score(served.store, "a")
    assert stream.event()["id"] == "1-1-0-scored"
    assert both.event()["id"] == "1-1-0-scored_1-1-0-scored"


def test_an_open_stream_says_now_and_then_that_it_is_there(serving, listen, monkeypatch):
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.2)
    monkeypatch.setattr(events, "POLL_S", 0.1)
    served = serving()
    stream = listen(served, mark_of(served))
    assert stream.event() == {"retry": "2000"}
    assert stream.event() == stream.event() == {"comment": "still here"}


def test_streams_are_bounded_and_one_that_is_closed_makes_room(serving, listen, monkeypatch):
    monkeypatch.setattr(events, "MOST_STREAMS", 2)
    served = serving()
    streams = [listen(served) for _ in range(2)]
    for stream in streams:
        assert stream.event() == {"retry": "2000"}
    refused = served.ask("GET", "/events")
    assert refused.status == 503
    assert refused.headers["retry-after"] == "30"
    streams[0].close()
    until = time.monotonic() + 300
    while (status := listen(served).response.status) == 503 and time.monotonic() < until:
        time.sleep(0.1)
    assert status == 200


def test_an_open_stream_does_not_hold_up_the_end_of_the_server(tmp_path, listen, monkeypatch):
    pytest.importorskip("fastapi")
    from counterpoint.store import Store
    from counterpoint.view.server import listening
    from counterpoint.view.server.app import create_app
    from counterpoint.view.server.listening import bind, server

    monkeypatch.setattr(listening, "STOP_S", 10**6)  # a stream that held it up would never be cut off
    with Store(tmp_path / "store.db") as store:
        app = create_app(store)
        running, sockets = server(app), bind("127.0.0.1", 0)
        thread = threading.Thread(target=running.run, args=(sockets,), daemon=True)
        thread.start()

        class Served:
            port = sockets[0].getsockname()[1]

        stream = listen(Served)
        assert stream.event() == {"retry": "2000"}
        app.state.stopping.set()
        running.should_exit = True
        thread.join(timeout=300)
        assert not thread.is_alive()
        while stream.event() is not None:
            pass


def test_a_stream_ends_when_the_store_cannot_be_read(serving, listen, monkeypatch):
    served = serving()
    stream = listen(served, mark_of(served))
    assert stream.event() == {"retry": "2000"}

    def broken():
        raise UsageError("the store cannot be read")

    monkeypatch.setattr(served.store, "version", broken)
    assert stream.event() is None
    assert served.ask("GET", "/").status == 503
    assert "cannot be read" in served.ask("GET", "/").text


def test_asking_for_the_head_of_a_stream_ends(serving):
    assert serving().ask("HEAD", "/events").headers["content-type"].startswith("text/event-stream")


def test_nothing_of_a_query_stands_in_a_stream(serving, listen):
    served = serving()
    for query in ("run=nobody", "since=%0A%0Adata:x", "run=~!!!&run=%00", "since=" + "x" * 5000):
        stream = listen(served, f"/events?{query}")
        assert stream.response.status == 200
        assert stream.event() == {"retry": "2000"}
        assert set(stream.event()) == {"id", "event", "data"}
