"""What was made of a run comes back as it was, masked and without what a database cannot hold."""

from __future__ import annotations

import pytest

from counterpoint.store import Store
from counterpoint.trace import Call, Step, Trace, Transfer, Usage, tidy

from .conftest import keep, row, span, trace, trace_id

KEY = "sk-" + "a1b2c3d4" * 4


def test_traces_come_back_as_they_were(store):
    steps = (
        Step("a", "A", "The answer is 7.", usage=Usage(tokens_in=3, cost_usd=0.1), started_at=1.5),
        Step("b", "B", "Yes.", heard=(Transfer("a"),), calls=(Call("c", "run", result="7"),), ended_at=9.0),
    )
    one = tidy(Trace("q1", steps, task="3+4?", gold="7", answer="7", correct=True, labels={"seed": 1}))
    (run,) = store.add_traces([one], origin="q.jsonl")
    assert store.traces(run) == [one]
    found = store.run(run)
    assert (found.task, found.answer, found.correct, found.steps) == ("3+4?", "7", True, 2)
    assert (found.agents, found.started_at, found.ended_at) == (("A", "B"), 1.5, 9.0)
    assert (found.origin, found.state, found.spans) == ("q.jsonl", "waiting", 0)


def test_traces_of_files_are_due_at_once(store):
    (run,) = store.add_traces([trace()], origin="file")
    assert store.due(1000) == [run]


def test_a_trace_added_again_is_unchanged_or_takes_the_place_of_the_old_one(store):
    outcomes = [store.put_traces([one], origin="f")[0] for one in (trace(), trace(), trace("q1", "more"))]
    assert [one.outcome for one in outcomes] == ["new", "unchanged", "changed"]
    assert {one.run for one in outcomes} == {"q1"}
    run = store.run("q1")
    assert (run.revision, store.runs().total) == (2, 1)
    assert store.traces("q1")[0].steps[0].text == "more"


def test_the_same_id_of_another_file_is_another_run(store):
    ids = [store.add_traces([trace("q1", origin)], origin=origin)[0] for origin in ("f", "g", "h", "g")]
    assert ids == ["q1", "q1~2", "q1~3", "q1~2"]
    assert store.traces("q1~2")[0].id == "q1~2"
    assert [one.outcome for one in store.put_traces([trace("q1", "g")], origin="g")] == ["unchanged"]


def test_a_run_s_id_is_of_bounded_length_and_the_same_every_time(store):
    long = ["a" * 5000, "a" * 5001, "ü" * 200, "b" * 200]
    first = store.add_traces(map(trace, long), origin="file")
    assert store.add_traces(map(trace, long), origin="file") == first
    assert len(set(first)) == 4
    assert first[2:] == long[2:]
    assert all(len(one) <= 220 and one.startswith("a" * 200 + "~") for one in first[:2])
    assert [one.id for one in store.traces(first[0])] == [first[0]]
    (again,) = store.add_traces([trace(long[0], "another")], origin="other")
    assert again == f"{first[0]}~2"


def test_a_copy_elsewhere_is_there_already(store):
    store.add_traces([trace("q1", "a", source="a.json"), trace("q1", "b", source="b.json")], origin="folder")
    added = store.put_traces([trace("q1", "b", source="copy.json")], origin="copy")
    assert (added[0].outcome, store.runs().total) == ("unchanged", 1)


def test_many_traces_are_written_in_pieces(store, monkeypatch):
    monkeypatch.setattr("counterpoint.store.store.BATCH_BYTES", 300)
    assert len(store.add_traces((trace(str(n)) for n in range(20)), origin="f")) == 20
    assert store.runs().total == 20


def test_rows_come_back_with_their_parts_exact_and_the_run_shows_their_values(store):
    (run,) = store.add_traces([trace()], origin="file")
    rows = [
        row(run, "upr", 0.25, parts={"paths": 2**70, "necessary": 3}, detail={"mode": "dag"}),
        row(run, "upr(threshold=0.6)", None, signature={"profile": "strict"}),
    ]
    store.keep(run, 1, traces=[trace()], rows=rows)
    assert store.rows(run) == rows
    assert store.run(run).values == {"upr": 0.25, "upr(threshold=0.6)": None}
    assert store.run(run).state == "scored"


def test_the_value_of_several_traces_is_their_mean(store):
    rows = [row("a", "upr", 0.25), row("b", "upr", 0.75), row("c", "upr", None)]
    store.add_spans([span(1)])
    store.keep(trace_id(1), 1, traces=[trace(name) for name in "abc"], rows=rows)
    assert store.run(trace_id(1)).values == {"upr": 0.5}


@pytest.mark.parametrize(
    ("verdicts", "correct"),
    [([True, True], True), ([True, False], None), ([False, False], False), ([None, True], None), ([], None)],
)
def test_a_run_is_right_or_wrong_where_all_of_its_traces_are(store, verdicts, correct):
    store.add_spans([span(1)])
    traces = [trace(str(n), correct=verdict) for n, verdict in enumerate(verdicts)]
    store.keep(trace_id(1), 1, traces=traces, rows=[])
    assert store.run(trace_id(1)).correct is correct


def test_a_run_that_could_not_be_read_says_why(store):
    store.add_spans([span(1)])
    store.keep(trace_id(1), 1, traces=[], rows=[], error="no span of an agent")
    run = store.run(trace_id(1))
    assert (run.state, run.error) == ("unreadable", "no span of an agent")
    assert store.due(0, now=1e12) == []


@pytest.mark.parametrize("keep_secrets", [False, True])
def test_keys_are_masked_wherever_they_stand_unless_they_are_kept(path, keep_secrets):
    with Store(path, keep_secrets=keep_secrets) as store:
        one = trace("q1", f"use {KEY}", task=KEY, answer=KEY, system=KEY)
        run = keep(store, one, claims=[{"text": KEY, "of": [{"a": KEY}]}], error=KEY)
        store.keep(run, 1, traces=[one], rows=[row(run, "ids", None, detail={"x": KEY})], error=KEY)
        store.keep(run, 1, traces=[one], rows=store.rows(run), claims=[{"text": KEY}], error=KEY)
        assert (store.runs(search=KEY).total == 1) is keep_secrets
        assert (KEY in repr([store.run(run), store.traces(run), store.rows(run)])) is keep_secrets
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert (KEY.encode() in content) is keep_secrets


@pytest.mark.parametrize("keep_secrets", [False, True])
def test_a_key_in_an_id_is_masked_alike_in_run_trace_scores_and_claims(path, keep_secrets):
    ids = [f"q {KEY}{end}" for end in "ab"]
    with Store(path, keep_secrets=keep_secrets) as store:
        runs = store.add_traces(map(trace, ids), origin="f")
        assert runs == (ids if keep_secrets else ["q [secret:openai]", "q [secret:openai]~2"])
        changed = [trace(ids[0]), trace(ids[1], "more")]
        assert [one.outcome for one in store.put_traces(changed, origin="f")] == ["unchanged", "changed"]
        for run in runs:
            (one,) = store.traces(run)
            store.keep(run, 2, traces=[one], rows=[row(one.id, "upr", 0.5)], claims=[{"trace": one.id}])
            assert one.id == store.rows(run)[0].trace == store.claims(run)[0]["trace"] == run
        store.keep(runs[0], 3, traces=[trace(ids[0])], rows=[row(ids[0], "accuracy", 1.0)])
        assert store.traces(runs[0])[0].id == store.rows(runs[0])[0].trace == runs[0]
        assert store.run(runs[0]).correct is True
        assert store.verify() == []
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert (KEY.encode() in content) is keep_secrets


def test_a_run_is_found_by_its_service_and_the_name_of_its_recording(store):
    step = Step("a", "A", "Hi.")
    for name, labels in (
        ("q1", {"service.name": "Desk-A"}),
        ("q2", {"service.name": "desk-b", "run": "trial"}),
    ):
        store.add_traces([tidy(Trace(name, (step,), labels=labels))], origin="file")
    found = {text: store.runs(search=text).total for text in ("desk", "desk-a", "DESK-B", "trial", "desk-c")}
    assert found == {"desk": 2, "desk-a": 1, "DESK-B": 1, "trial": 1, "desk-c": 0}


@pytest.mark.parametrize(
    "text", ["\ud800 lone", "nul \x00 nul", "x" * 10**6, "\u202e'); DROP TABLE runs;--", ""]
)
def test_hostile_text_is_stored_as_text(store, text):
    seen = text.replace("\ud800", "\ufffd")
    one = trace("q" + text[:50], text, task=text, system=text, answer=text)
    run = keep(store, one, claims=[{"text": text, text: 1}], error=text)
    found = store.run(run)
    assert found.id == "q" + seen[:50]
    assert (found.system, found.task, found.error) == (seen, seen[:2000], seen)
    assert store.traces(run)[0].steps[0].text == seen
    assert store.claims(run)[0]["text"] == seen
    assert store.runs(search=text).total == 1
    assert store.verify() == []


def test_a_gone_run_keeps_nothing(store):
    store.keep("gone", 1, traces=[trace()], rows=[])
    assert store.runs().total == 0
    assert store.verify() == []
