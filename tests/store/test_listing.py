"""The list of runs: what a search finds, which runs a condition lets through, and in which order."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterpoint.errors import UsageError
from counterpoint.store import Store, listing

from .conftest import keep, span, trace, trace_id


@pytest.fixture(scope="module")
def few() -> Iterator[Store]:
    """Four runs: two scored, one unreadable, one of which spans still come in."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "few.db") as store:
        one = trace(
            "one", "All in all, 50%_ of it", task="Red\\Blue?", system="mad", correct=True, answer="7"
        )
        two = trace("two", "ÄPFEL und 東京都 birnen", "more", task="green?", system="mad", correct=False)
        keep(store, one, {"upr": 0.5, "ids": 0.9})
        keep(store, two, {"upr": 0.1, "ids": None})
        keep(store, trace("bad", system="nobody's"), error="it broke")
        store.add_spans([span(1), span(1, 2)])
        yield store


def ids(store: Store, **asked: object) -> list[str]:
    return [run.id for run in store.runs(order="-received", **asked).rows]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["one", "two", "bad", trace_id(1)]),
        ("   ", ["one", "two", "bad", trace_id(1)]),
        ("all in", ["one"]),
        ("ALL IN ALL, 50%_ of it", ["one"]),
        ("50%_", ["one"]),
        ("5%", []),
        ("_", []),
        ("%", []),
        ("7", ["one"]),
        ("red\\blue", ["one"]),
        ("d\\", ["one"]),
        ("äpfel", ["two"]),
        ("東京都", ["two"]),
        ("東京都 b", ["two"]),
        ("mad", ["one", "two"]),
        ("agent 1", ["two"]),
        ("nobody's", ["bad"]),
        ('"nobody', []),
        ("AND OR NOT", []),
        ("all *", []),
        ("one", ["one"]),
        ("tw", ["two"]),
        ("0001", [trace_id(1)]),
        ("all 50", []),
        ("x" * 10_000, []),
        ("\x00\ud800", []),
    ],
)
def test_a_search_is_for_text_that_stands_somewhere_in_a_run(few, text, found):
    assert ids(few, search=text) == found


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"system": "mad"}, ["one", "two"]),
        ({"system": "ma"}, []),
        ({"system": ""}, [trace_id(1)]),
        ({"state": "scored"}, ["one", "two"]),
        ({"state": "unreadable"}, ["bad"]),
        ({"state": "receiving"}, [trace_id(1)]),
        ({"state": "waiting"}, []),
        ({"correct": "right"}, ["one"]),
        ({"correct": "wrong"}, ["two"]),
        ({"correct": "ungraded"}, ["bad", trace_id(1)]),
        ({"where": "upr>0.4"}, ["one"]),
        ({"where": "upr>=10%"}, ["one", "two"]),
        ({"where": "upr<0.5"}, ["two"]),
        ({"where": "upr<1, ids>0"}, ["one"]),
        ({"where": "max(upr)<=0.1"}, ["two"]),
        ({"where": " "}, ["one", "two", "bad", trace_id(1)]),
        ({"where": "upr>0", "search": "birnen", "system": "mad", "correct": "wrong"}, ["two"]),
        ({"offset": 1, "limit": 2}, ["two", "bad"]),
        ({"offset": 99}, []),
        ({"limit": 0}, []),
    ],
)
def test_conditions_let_through_the_runs_that_meet_all_of_them(few, asked, found):
    assert ids(few, **asked) == found


def test_a_run_that_is_quiet_and_not_scored_is_waiting(store, monkeypatch):
    store.add_spans([span(1)])
    store.add_traces([trace("file")], origin="file")
    states = {run.id: run.state for run in store.runs().rows}
    assert states == {trace_id(1): "receiving", "file": "waiting"}
    assert ids(store, state="waiting") == ["file"]
    now = time.time()
    monkeypatch.setattr(listing.time, "time", lambda: now + listing.QUIET_S + 1)
    assert ids(store, state="receiving") == []
    assert ids(store, state="waiting") == [trace_id(1), "file"]
    assert [run.due for run in store.runs(state="waiting").rows] == [True, True]


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("received", [trace_id(1), "bad", "two", "one"]),
        ("-received", ["one", "two", "bad", trace_id(1)]),
        ("system", [trace_id(1), "one", "two", "bad"]),
        ("steps", ["two", "one", "bad", trace_id(1)]),
        ("-spans", ["bad", "two", "one", trace_id(1)]),
        ("upr", ["one", "two", trace_id(1), "bad"]),
        ("-upr", ["two", "one", trace_id(1), "bad"]),
    ],
)
def test_runs_come_in_the_order_that_is_asked_for(few, order, found):
    assert [run.id for run in few.runs(order=order).rows] == found


def test_the_page_says_how_many_match_and_which_systems_there_are(few):
    page = few.runs(system="mad", limit=1)
    assert (page.total, len(page.rows)) == (2, 1)
    assert page.systems == ("mad", "nobody's")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"state": "scorred"}, "state 'scorred' is none of receiving, waiting, scored, unreadable.*scored"),
        ({"correct": "maybe"}, "correct 'maybe' is none of right, wrong, ungraded"),
        ({"where": "upr>"}, "expected a number"),
        ({"where": "ci_low(upr)>0.1"}, "of one run there are no intervals"),
        ({"where": "upr_>0.1"}, r"no run has 'upr_'.*upr"),
        ({"order": "nonsense"}, "order 'nonsense' is none of received, .*, upr"),
    ],
)
def test_a_condition_without_meaning_is_an_error(few, asked, message):
    with pytest.raises(UsageError, match=message):
        few.runs(**asked)


def test_a_metric_that_nothing_was_scored_by_yet_is_no_error_in_an_empty_store(store):
    assert store.runs(where="upr>0.4", order="upr").total == 0


def test_long_lists_have_the_values_of_all_their_runs(store):
    for number in range(3):
        keep(store, trace(str(number)), {"upr": number / 4})
    assert [run.values["upr"] for run in store.runs(limit=10**9, order="upr").rows] == [0.5, 0.25, 0]


def test_what_is_found_is_what_stands_there(store):
    chance = random.Random(7)

    def text(most: int) -> str:
        return "".join(chance.choices("abAB \"'%_\\*ßİé\n東\x00", k=chance.randint(3, most)))

    there = [f".{text(12)}." for _ in range(200)]
    store.add_traces([trace(f"-{n}-", one) for n, one in enumerate(there)], origin="")
    hits = 0
    for _ in range(300):
        asked = text(4)
        wanted = asked.replace("\x00", " ").lower().strip()
        if len(wanted) < 3:
            continue
        expected = [f"-{n}-" for n, one in enumerate(there) if wanted in one.replace("\x00", " ").lower()]
        assert ids(store, search=asked, limit=1000) == expected
        hits += len(expected)
    assert hits > 20
