"""Open pages in a real browser while runs arrive: they keep up, and keep what the reader is at."""

from __future__ import annotations

import json
import socket
import threading

import pytest
from pages_world import put, score, scored, three_runs, trace

from counterpoint.store import listing
from counterpoint.view.server import pages
from counterpoint.view.server.parts import Parts
from counterpoint.view.server.run_page import run_main

pytestmark = pytest.mark.slow


def tasks(page):
    return page.locator("tbody th").all_inner_texts()


def span(number, agent, text):
    """A span of a model call, as an exporter sends it in JSON."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
    facts = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.output.messages": json.dumps(said),
    }
    return {
        "traceId": "ab" * 16, "spanId": f"{number:016x}", "name": f"invoke_agent {agent}",
        "startTimeUnixNano": str(number * 10**9), "endTimeUnixNano": str(number * 10**9 + 10**8),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in facts.items()],
    }  # fmt: skip


def send(served, *spans):
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    assert served.ask("POST", "/v1/traces", body, content_type="application/json").status == 200


def test_the_list_keeps_up_while_runs_arrive_and_keeps_focus_and_what_was_typed(serving, visit):
    served = three_runs(serving)
    page = visit(served.url)
    page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
    page.check("#a-b")
    page.focus("#q")
    page.keyboard.type("mar")
    page.keyboard.press("ArrowLeft")
    page.evaluate("() => { document.getElementById('run-a').kept = true; }")
    put(served.store, trace("d", task="New and <b>bold</b>?"))
    page.wait_for_selector("#run-d")
    assert tasks(page)[0] == "New and <b>bold</b>?"
    assert page.evaluate("() => [document.activeElement.id, document.activeElement.selectionStart]") == [
        "q",
        2,
    ]
    assert page.input_value("#q") == "mar"
    assert page.locator("#a-b").is_checked()
    assert page.evaluate("() => document.getElementById('run-a').kept")
    assert page.inner_text("#live-told") == "4 runs"
    page.focus("#open-b")
    put(served.store, trace("e"))
    page.wait_for_selector("#run-e")
    assert page.evaluate("() => document.activeElement.id") == "open-b"


def test_a_run_is_watched_from_its_first_span_on(serving, visit, monkeypatch):
    monkeypatch.setattr(listing, "QUIET_S", 10**6)  # else a slow machine has it wait before it is looked at
    served = serving()
    page = visit(served.url)
    page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
    send(served, span(1, "ann", "I think it is 7."))
    row = page.wait_for_selector("tbody tr")
    assert "receiving" in row.inner_text()
    assert "1 span" in row.inner_text()
    with page.expect_navigation():
        page.click("tbody th a")
    page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
    assert "I think it is 7." in page.inner_text("ol.steps")
    page.focus("#compare")
    send(served, span(2, "bob <img src=x onerror=window.pwned=1>", "Yes, it is 7."))
    page.wait_for_selector("text=Yes, it is 7.")
    assert page.inner_text("#live-told") == "receiving, 2 spans"
    assert page.evaluate("() => document.activeElement.id") == "compare"
    assert page.locator("ol.steps > li").count() == 2
    assert "bob <img" in page.inner_text(".facts")


def test_the_page_of_a_run_keeps_up_and_keeps_what_was_opened_and_where_it_was_scrolled(serving, visit):
    served = serving()
    put(served.store, trace("a", steps=30))
    page = visit(served.url + "/runs/a")
    page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
    assert "as far as it has come" in page.inner_text("main")
    lanes = page.locator("figure").first
    lanes.evaluate(
        "(one) => { one.scrollIntoView(); one.scrollLeft = 40; one.focus({preventScroll: true}); }"
    )
    top = lanes.bounding_box()["y"]
    score(served.store, "a", trace("b"))
    page.wait_for_selector("#t2", state="attached")
    assert page.inner_text("#live-told") == "scored, 34 steps"
    assert "as far as it has come" not in page.inner_text("main")
    assert lanes.evaluate("(one) => [one === document.activeElement, one.scrollLeft]") == [True, 40]
    assert lanes.bounding_box()["y"] == pytest.approx(top, abs=2)  # though numbers came above it
    page.locator("details#t1 > summary").click()
    page.locator("details#t2 > summary").click()
    score(served.store, "a", metrics=["steps"], error="seen anew")
    page.wait_for_selector(".state-unreadable")
    assert page.locator("details#t1").get_attribute("open") is None
    assert page.locator("details#t2").get_attribute("open") is not None


def test_paused_pages_stay_as_they_are_and_catch_up(serving, visit):
    served = three_runs(serving)
    page = visit(served.url)
    page.click("#live-pause")
    put(served.store, trace("d"))
    page.wait_for_timeout(1500)
    assert page.locator("#run-d").count() == 0
    page.click("#live-pause")
    page.wait_for_selector("#run-d")


def test_the_page_of_a_run_that_is_pruned_says_so(serving, visit):
    served = three_runs(serving)
    page = visit(served.url + "/runs/a")
    page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
    served.store.prune(keep=1)
    page.wait_for_selector("text=There is no run a")
    assert page.inner_text("#live-state") == "Gone"
    assert page.title() == "Not found – Counterpoint"
    page.expected.append("404")


def test_a_page_says_that_the_server_is_gone_and_goes_on_when_it_is_back(tmp_path, visit):
    from counterpoint.store import Store
    from counterpoint.view.server.app import create_app
    from counterpoint.view.server.listening import bind, server

    def start(port):
        app = create_app(store)
        running, sockets = server(app), bind("127.0.0.1", port)
        thread = threading.Thread(target=running.run, args=(sockets,))
        thread.start()

        def stop():
            app.state.stopping.set()
            running.should_exit = True
            thread.join()

        return sockets[0].getsockname()[1], stop

    with Store(tmp_path / "store.db") as store:
        scored(store, trace("a"))
        port, stop = start(0)
        try:
            page = visit(f"http://127.0.0.1:{port}/")
            page.expected.append("ERR_")
            page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
            stop()
            with socket.socket() as held:  # nobody else gets the port meanwhile
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                held.bind(("127.0.0.1", port))
                page.wait_for_function(
                    "() => document.getElementById('live-state').textContent === 'Not connected'"
                )
                assert page.inner_text("#live-told") == "Not connected: the server does not answer"
                scored(store, trace("b"))
            _, stop = start(port)
            page.wait_for_selector("#run-b")
            assert page.inner_text("#live-state") == "Live"
        finally:
            stop()


def test_with_a_token_a_page_is_reached_by_the_form_and_keeps_up(serving, visit):
    served = serving(token="open sesame")
    page = visit(served.url + "/?q=3")
    page.fill("input[name=token]", "open sesame")
    with page.expect_navigation():
        page.click("button")
    page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
    scored(served.store, trace("a"))
    page.wait_for_selector("#run-a")
    page.context.clear_cookies()  # the time of the cookie is over
    put(served.store, trace("b"))
    page.wait_for_selector("input[name=token]")
    page.expected.append("401")


def test_a_page_that_rests_after_it_was_costly_catches_up_by_itself(serving, visit, monkeypatch):
    now = [0.0]

    def costly(store, run):
        now[0] += 0.5
        return run_main(store, run)

    monkeypatch.setattr(pages, "run_main", costly)
    monkeypatch.setattr(pages, "Parts", lambda: Parts(clock=lambda: now[0]))
    served = serving()
    put(served.store, trace("a"))
    page = visit(served.url + "/runs/a")
    page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
    score(served.store, "a")
    page.wait_for_selector("main[data-again='2000']", state="attached")
    assert page.locator("#metrics table").count() == 0
    now[0] += 2
    page.wait_for_selector("#metrics table")
    assert page.locator("main[data-again]").count() == 0
