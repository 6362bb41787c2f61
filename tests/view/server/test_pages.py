"""The pages of the web view, without a browser: what stands in them, and that texts of others are texts."""

from __future__ import annotations

import re
import shlex
import time
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages_world import EVIL, Page, claim, evil, put, score, scored, trace

from counterpoint.trace import decode
from counterpoint.view.server import parts as parts_module
from counterpoint.view.server import runs_page
from counterpoint.view.server.layout import day, key_of, moment, run_of
from counterpoint.view.server.parts import Parts
from counterpoint.view.server.run_page import how_to_give
from counterpoint.view.server.runs_page import Asked


def page(served, path, status=200):
    answer = served.ask("GET", path, accept="text/html")
    assert answer.status == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Page(answer.text)


def rows(found):
    """The tasks of the list, in order."""
    return [one.partition("/runs/")[2] for one in found.links if one.startswith("/runs/")]


def test_an_empty_store_says_how_to_bring_runs(serving):
    served = serving()
    text = page(served, "/").text
    assert f"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{served.port}" in text
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in text
    assert "counterpoint store add" in text


def test_the_list_shows_what_a_run_is_and_how_it_went(serving):
    served = serving()
    scored(served.store, trace("good", correct=True, answer="7"), trace("bad", correct=False, answer="8"))
    (late,) = put(served.store, trace("late"))
    (broken,) = put(served.store, trace("broken"))
    score(served.store, broken, error="no step could be read")
    found = page(served, "/")
    assert rows(found) == [broken, late, "bad", "good"]
    for told in (
        "4 runs",
        "team",
        "4 steps",
        "agent 0, agent 1, agent 2",
        "waiting",
        "scored",
        "unreadable",
        "right",
    ):
        assert told in found.text
    for told in ("wrong", "no step could be read", "upr ↓", "tokens_out ↓", "UTC"):
        assert told in found.text
    assert found.tags.count("th") == 11 + 4
    assert {"header", "nav", "main", "footer", "form", "label", "caption"} <= set(found.tags)


QUERIES = {
    "q=marble": ["b"],
    "q=nobody+said+so": [],
    "system=other": ["c"],
    "state=waiting": ["d"],
    "state=receiving": [],
    "state=nonsense": ["d", "c", "b", "a"],
    "correct=right": ["a"],
    "correct=wrong": ["b"],
    "correct=ungraded": ["d", "c"],
    "where=steps%3E5": ["c"],
    "where=steps%3E3,steps%3C5": ["b", "a"],
    "order=-received": ["a", "b", "c", "d"],
    "order=-tokens_out": ["b", "a", "c", "d"],
    "order=; DROP TABLE runs": ["d", "c", "b", "a"],
    "page=0": ["d", "c", "b", "a"],
    "page=-1e9": ["d", "c", "b", "a"],
    "page=99999999": [],
}


def test_the_list_is_searched_filtered_and_ordered(serving):
    served = serving()
    scored(
        served.store,
        trace("a", correct=True),
        trace("b", task="How many marbles?", correct=False),
        trace("c", steps=6, system="other", gold=None),
    )
    put(served.store, trace("d"))
    found = {query: rows(page(served, "/?" + quote(query, safe="=&%+"))) for query in QUERIES}
    assert found == QUERIES


def test_the_form_keeps_what_was_asked_and_the_pages_of_the_list_too(serving):
    served = serving()
    put(served.store, *(trace(f"t{number:03}", task=f"task {number:03}") for number in range(120)))
    first = page(served, "/?q=task&order=task")
    assert len(rows(first)) == 50
    assert "120 runs, 1 to 50" in first.text
    assert "/?q=task&order=task&page=2" in first.links
    second = page(served, "/?q=task&order=task&page=3")
    assert rows(second) == [f"t{number:03}" for number in range(100, 120)]
    assert "/?q=task&order=task&page=2" in second.links
    assert 'value="task"' in served.ask("GET", "/?q=task").text


CONDITIONS = {
    "upr>": "expected a number",
    "upr": "expected one of",
    "upr>0.4 and": "expected a comma",
    "upq>0.4": "did you mean 'upr'",
    "ci_low(upr)>0.4": "intervals",
    "<script>window.pwned=1</script>": "expected a metric",
}


def test_a_malformed_condition_is_answered_with_what_is_wrong(serving):
    served = serving()
    scored(served.store, trace("a"))
    for where, told in CONDITIONS.items():
        found = page(served, "/?where=" + quote(where), status=400)
        assert told in found.text
        assert rows(found) == ["a"]


def test_the_page_of_a_run_has_numbers_pictures_steps_claims_and_signatures(serving):
    served = serving()
    (run,) = put(served.store, trace("a", gold=None))
    lives = [
        claim(1, "born", "agent 0", 0, "It is 7."),
        claim(1, "adopted", "agent 1", 1, "It is 7."),
        claim(2, "born", "agent 1", 1, "It is odd."),
        claim(2, "lost", "", 2, "It is odd."),
    ]
    score(served.store, run, claims=lives)
    found = page(served, "/runs/a")
    assert {"metrics", "traces", "signatures", "main", "t1", "t1-s1"} <= set(found.ids)
    assert found.tags.count("svg") == 3
    assert found.tags.count("h1") == 1
    assert "born by agent 0 in round 0 → adopted by agent 1 in round 1" in found.text
    assert "born by agent 1 in round 1 → lost in round 2" in found.text
    assert "no gold answer: record one with the trace" in found.text
    assert "taken up" in found.text
    assert "/runs/a/report" in found.links
    goals = {link[1:] for link in found.links if link.startswith("#")}
    assert goals <= set(found.ids)


def test_a_run_that_is_not_scored_yet_is_shown_as_far_as_it_came(serving):
    served = serving()
    put(served.store, trace("a"))
    found = page(served, "/runs/a")
    assert "as far as it has come" in found.text
    assert "No metric has been computed" in found.text
    assert found.tags.count("svg") == 3


def test_each_trace_of_a_run_has_a_section(serving):
    served = serving()
    (run,) = put(served.store, trace("a"))
    score(served.store, run, trace("b", text="The answer is 8."))
    found = page(served, "/runs/a")
    assert {"t1", "t2"} <= set(found.ids)
    assert found.tags.count("svg") == 6
    assert "n=2" in found.text
    assert "2 traces" in found.text


def test_a_run_that_could_not_be_read_says_why(serving):
    served = serving()
    (run,) = put(served.store, trace("a"))
    score(served.store, run, error="the 2nd span is no span")
    assert "could not be read or scored: the 2nd span is no span" in page(served, "/runs/a").text


def test_the_report_of_a_run_is_a_file(serving):
    served = serving()
    scored(served.store, trace("a"))
    answer = served.ask("GET", "/runs/a/report")
    assert answer.status == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="counterpoint-a.html"'
    assert "<style>" in answer.text
    assert "script-src" not in re.findall(r"<meta http-equiv[^>]*>", answer.text)[0]
    assert "taken up" in answer.text


def test_two_runs_stand_side_by_side(serving):
    served = serving()
    scored(served.store, trace("a", steps=6), trace("b", task="2+5?", text="The answer is 8."))
    found = page(served, "/compare?a=a&b=b")
    assert found.tags.count("svg") == 6
    assert "Two single runs carry no interval" in found.text
    assert "answer 7 (right) 8 (wrong)" in found.text
    assert "The tasks of the two runs differ" in found.text
    assert "accuracy ↑ 1.000 0.000 −1.000 A" in found.text
    assert "tokens_out ↓ 30 20 −10 B" in found.text
    assert "steps 6 4 −2 " in found.text
    assert "agent 0 2 30 2 30" in found.text
    assert {"/runs/a", "/runs/b", "/compare?a=b&b=a"} <= set(found.links)


MISSING = [
    ("/compare", 400, "Two runs are needed"),
    ("/compare?a=a", 400, "Two runs are needed"),
    ("/compare?a=a&b=nobody", 404, "There is no run nobody"),
    ("/runs/nobody", 404, "There is no run nobody"),
    ("/runs/nobody/report", 404, "There is no run nobody"),
    ("/runs/~!!!", 404, "There is no run"),
    ("/runs/~AP8", 404, "There is no run"),
    ("/runs/%00", 404, "There is no run [U+0000]"),
    ("/runs/%3Cscript%3Ewindow.pwned=1", 404, "There is no run <script>window.pwned=1"),
    ("/nothing", 404, "There is no such page"),
]


def test_what_is_not_there_is_said_on_a_page(serving):
    served = serving()
    scored(served.store, trace("a"))
    for path, status, told in MISSING:
        assert told in page(served, path, status).text


def test_a_comparison_is_begun_from_a_run(serving):
    served = serving()
    scored(served.store, trace("a"), trace("b"))
    assert "/?a=a" in page(served, "/runs/a").links
    found = page(served, "/?a=a")
    assert "To be compared: 3+4?" in found.text
    assert not [one for one in found.ids if one.startswith("a-")]
    assert {"b-a", "b-b"} <= set(found.ids)
    assert "not here any more" in page(served, "/?a=nobody").text


def test_texts_of_others_are_texts_on_every_page(serving):
    served = serving()
    (first, second) = put(served.store, evil(EVIL), evil("x" * 1_000_000))
    lives = [claim(1, "born", EVIL, 0, EVIL), claim(1, EVIL, EVIL, 1, EVIL), {"event": EVIL}]
    score(served.store, first, evil("again"), claims=lives, error=EVIL)
    score(served.store, second)
    key = key_of(first)
    for path in ("/", f"/runs/{key}", f"/compare?a={key}&b={key}", f"/?a={key}"):
        found = page(served, path)  # fails on any tag or attribute that is not ours
        assert "<img src=x onerror=window.pwned=1>" in found.text
        assert "[U+202E]" in found.text
        assert not re.search("[\u202a-\u202e\u2066-\u2069\ud800-\udfff\x00-\x08]", found.text)
    assert "onerror" in served.ask("GET", f"/runs/{key}/report").text


def test_a_run_whose_id_has_no_room_in_an_address_is_listed_without_a_link(serving, monkeypatch):
    monkeypatch.setattr(runs_page, "MOST_KEY", 5)
    served = serving()
    put(served.store, trace("short"), trace("longer"))
    found = page(served, "/")
    assert rows(found) == ["short"]
    assert found.text.count("too long for an address") == 1


def test_texts_in_a_query_are_texts(serving):
    served = serving()
    scored(served.store, trace("a"))
    text = quote(EVIL.encode("utf-8", "surrogatepass"))
    for name in ("q", "system", "state", "correct", "where", "order", "page", "a"):
        page(served, f"/?{name}={text}", 400 if name == "where" else 200)
        assert served.ask("GET", f"/?{name}=" + "%F0%9F" * 2000).status in (200, 400)
    page(served, f"/compare?a=a&b={text}", 404)


def test_no_path_of_a_request_reaches_the_disk(serving):
    served = serving()
    for name in ("../pages.py", "..%2fpages.py", "%2e%2e/pages.py", "/etc/passwd", "pages.css%00", "", "no"):
        assert served.ask("GET", f"/static/{name}").status == 404


def test_style_and_script_are_files_that_browsers_may_keep(serving):
    served = serving()
    for link in (one for one in page(served, "/").links if one.startswith("/static/")):
        answer = served.ask("GET", link)
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"] in ("text/css; charset=utf-8", "text/javascript; charset=utf-8")
    assert served.ask("GET", "/").headers["cache-control"] == "no-store"


@given(st.text(st.characters(codec=None), max_size=300))
def test_every_id_has_a_key_that_is_plain_and_leads_back(run_id):
    key = key_of(run_id)
    assert re.fullmatch(r"~?[A-Za-z0-9._-]*", key)
    assert key not in (".", "..")
    assert run_of(key) == run_id


def test_a_part_is_made_once_and_the_least_used_goes_first():
    parts, made = Parts(most=10), []

    def make(name):
        made.append(name)
        return name * 4

    for name in "aabacab":
        assert parts.of((name,), (1,), lambda name=name: make(name)) == (name * 4, 0)
    assert made == ["a", "b", "c", "b"]
    assert parts.size == 8


def test_a_part_that_took_long_is_shown_until_four_times_as_long_has_passed():
    now = [0.0]
    parts = Parts(clock=lambda: now[0])

    def make(text, took):
        now[0] += took
        return text

    def at(moment, state, took=5.0):
        now[0] = moment
        return parts.of(("run", "a"), (state,), lambda: make(f"state {state}", took))

    assert at(0, 1) == ("state 1", 0)  # made from 0 to 5
    assert at(6, 1) == ("state 1", 0)
    assert at(6, 2) == ("state 1", 19)
    assert at(24, 3) == ("state 1", 1)
    assert at(25, 3) == ("state 3", 0)  # made from 25 to 30
    assert at(49, 4) == ("state 3", 1)
    assert at(50, 4, took=0.4) == ("state 4", 0)
    assert at(50.4, 5) == ("state 5", 0)  # what is made fast does not rest
    assert parts.size == len("state 5")


def test_a_page_that_is_shown_as_it_was_says_when_it_has_a_newer_one(serving, monkeypatch):
    monkeypatch.setattr(parts_module, "LONG_S", 0.0)
    monkeypatch.setattr(parts_module, "PATIENCE", 1e6)
    served = serving()
    put(served.store, trace("a"))
    assert "data-again" not in served.ask("GET", "/runs/a").text
    score(served.store, "a")
    late = served.ask("GET", "/runs/a").text
    assert "No metric has been computed" in late
    assert int(re.findall('data-again="([0-9]+)"', late)[0]) > 1000
    assert "0 undefined" not in served.ask("GET", "/runs/a/report").text
    assert "tokens_out" in served.ask("GET", "/runs/a/report").text


LEFT_OUT = {
    "page=abc": "page='abc' is left out: expected a number from 1 on",
    "page=0": "page='0' is left out",
    "order=%27;drop": "is left out: expected one of received,",
    "state=nonsense": "state='nonsense' is left out: expected one of receiving,",
    "order=ids": "order='ids' is left out: no run here has a value of it",
    "correct=1": "correct='1' is left out: expected one of right, wrong, ungraded",
    "sistem=a": "'sistem' is left out: expected one of q, system, state,",
}


def test_what_makes_no_sense_in_a_query_is_told_in_a_line(serving):
    served = serving()
    assert LEFT_OUT["page=abc"] in page(served, "/?page=abc").text
    scored(served.store, trace("a"))
    for query, told in LEFT_OUT.items():
        assert told in page(served, f"/?{query}").text, query
    assert "left out" not in page(served, "/?page=1&order=-upr&state=&correct=right&a=a").text


def test_a_run_without_a_task_goes_by_its_name(serving):
    served = serving()
    named = [trace(key, task="", labels={"run": f"my-run-{key}"}) for key in "ab"]
    scored(served.store, *named, trace("c", task="3+4?", labels={"run": "not shown"}))
    for path in ("/", "/?q=my-run-a", "/runs/a", "/compare?a=a&b=c"):
        assert "my-run-a" in page(served, path).text, path
    assert "<h1><bdi>my-run-a</bdi></h1>" in served.ask("GET", "/runs/a/report").text
    assert "my-run-b" not in page(served, "/?q=my-run-a").text
    assert "not shown" not in page(served, "/").text
    assert "tasks of the two runs differ" in page(served, "/compare?a=a&b=c").text
    assert "tasks of the two runs differ" not in page(served, "/compare?a=b&b=a").text


def test_what_metrics_do_not_count_is_told_beside_them(serving):
    served = serving()
    given = trace("a", steps=4)
    decided = {"id": "end", "agent": "judge", "kind": "decision", "text": "7", "answer": "7"}
    steps = [*msgspec.to_builtins(given)["steps"], decided]
    scored(served.store, decode({"id": "a", "task": "3+4?", "gold": "7", "steps": steps}), trace("b"))
    text = page(served, "/runs/a").text
    assert "5 steps (4 by agents), 1 trace" in text
    assert "without 1 step of a tool, of control or of a decision; and without judge" in text
    assert "by agents" not in page(served, "/runs/b").text


def test_how_to_give_what_a_reason_asks_for_is_told_with_the_id_of_the_run(serving):
    served = serving()
    name = "it's $(id) <b>"
    scored(served.store, trace(name, gold=None, steps=2), trace("b"))
    for path in (f"/runs/{key_of(name)}", f"/compare?a=b&b={key_of(name)}"):
        text = page(served, path).text
        assert f"counterpoint store export -o run.jsonl {shlex.quote(name)} counterpoint score" in text
        assert text.count("cp.record(") == 1
    assert how_to_give([], ["b"]) == ""
    assert "store export" not in page(served, "/runs/b").text


def test_the_service_that_a_run_is_of_is_told_where_it_has_a_name(serving):
    served = serving()
    named = trace("named", labels={"service.name": "desk-<b>"})
    scored(served.store, named, trace("nameless"))
    assert "Service desk-<b>" in " ".join(page(served, "/runs/named").text.split())
    assert "Service" not in page(served, "/runs/nameless").text


def test_a_run_of_very_many_agents_names_some(serving):
    served = serving()
    steps = [{"id": f"s{n}", "agent": f"agent number {n}", "text": "7"} for n in range(1000)]
    put(served.store, decode({"id": "a", "steps": steps}))
    assert "agent number…, agent number… and 998 more" in page(served, "/").text
    found = page(served, "/runs/a")
    assert "agent number 7 and 992 more agent number 8," in found.text
    assert "agent number 507 and 492 that are not named here" in found.text
    assert "there is no arrow to draw" in found.text


def test_the_list_tells_the_day_short_and_the_whole_time_in_a_title():
    year = datetime.now(UTC).year
    at = datetime(year, 3, 4, 5, 6, 7, tzinfo=UTC).timestamp()
    assert day(at) == (
        f'<time datetime="{year}-03-04T05:06:07Z" title="{year}-03-04 05:06:07 UTC">03-04 05:06</time>'
    )
    assert ">1970-01-01</time>" in day(0)
    assert day(None) == day(float("inf")) == ""


def test_a_time_that_is_none_is_not_shown():
    assert moment(None) == moment(float("inf")) == moment(float("nan")) == moment(1e300) == ""
    assert moment(0) == '<time datetime="1970-01-01T00:00:00Z">1970-01-01 00:00:00 UTC</time>'


def test_what_makes_no_sense_in_a_query_is_not_asked():
    asked = Asked.of({"page": "٣", "order": "key", "state": "x", "correct": "1", "q": "x" * 5000})
    assert (asked.page, asked.order, asked.state, asked.correct, len(asked.q)) == (1, "", "", "", 1000)


@pytest.mark.slow
def test_the_page_of_a_very_long_run_is_small_and_comes_at_once(serving):
    """Of the processor: other work on the machine is not ours."""
    served = serving()
    long = trace("long", steps=33_000, text="The answer is 7, said at some length by the one who was asked.")
    (run,) = put(served.store, long)
    score(served.store, run, metrics=["steps"])
    first = served.ask("GET", "/runs/long")
    start = time.process_time()
    answer = served.ask("GET", "/runs/long")
    took = time.process_time() - start
    assert answer.body == first.body
    assert len(answer.body) <= 5_000_000
    assert took <= 2
