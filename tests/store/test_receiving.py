"""Spans come in: each kept once, in order, in the run that its trace and its links put it in."""

from __future__ import annotations

import time

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData

from counterpoint.errors import UsageError
from counterpoint.store import Span, Store

from .conftest import span, trace_id


def spans_of(store: Store, run: str) -> list[tuple[str, str]]:
    """Trace and name of each span of the run, read as protobuf."""
    data = TracesData.FromString(store.otlp(run))
    return [
        (one.trace_id.hex()[-1], one.name)
        for resource in data.resource_spans
        for scope in resource.scope_spans
        for one in scope.spans
    ]


def test_spans_of_a_trace_are_a_run_in_order_of_arrival(store):
    store.add_spans([span(1, 2, text="b"), span(2, 1, text="other")])
    store.add_spans([span(1, 1, text="a")])
    assert spans_of(store, trace_id(1)) == [("1", "b"), ("1", "a")]
    run = store.run(trace_id(1))
    assert (run.spans, run.revision, run.traces, run.origin, run.state) == (2, 2, 1, "otlp", "receiving")
    assert run.started_at == 1.0
    assert abs(run.received_at - time.time()) < 60


def test_a_span_sent_again_changes_nothing(store):
    store.add_spans([span(1, 1, text="a")])
    store.add_spans([span(1, 1, text="a"), span(1, 2, text="b"), span(1, 2, text="b")])
    assert spans_of(store, trace_id(1)) == [("1", "a"), ("1", "b")]
    run = store.run(trace_id(1))
    assert (run.spans, run.revision) == (2, 2)


def test_a_span_sent_again_with_more_in_it_replaces_the_first(store):
    store.add_spans([span(1, 1, text="begun"), span(1, 2)])
    store.add_spans([span(1, 1, text="ended")])
    assert spans_of(store, trace_id(1)) == [("1", "ended"), ("1", "")]
    run = store.run(trace_id(1))
    assert (run.spans, run.revision) == (2, 3)


@pytest.mark.parametrize(
    ("sent", "joined"),
    [
        ([[span(1)], [span(2, links=(1,))]], {1, 2}),
        ([[span(2, links=(1,))], [span(1)]], {1, 2}),
        ([[span(2, links=(1,)), span(1)]], {1, 2}),
        ([[span(1)], [span(2)], [span(3)], [span(3, 2, links=(1, 2))]], {1, 2, 3}),
        ([[span(1, links=(4,))], [span(2, links=(4,))]], {1, 2}),
        ([[span(1, links=(1,))]], {1}),
    ],
    ids=["back", "ahead", "at once", "late", "through a third", "to itself"],
)
def test_links_join_runs_in_whatever_order_they_come(store, sent, joined):
    for batch in sent:
        store.add_spans(batch)
    (run,) = store.runs().rows
    assert run.id == sent[0][0].trace_id
    assert run.traces == len(joined)
    assert run.spans == run.revision == sum(map(len, sent))
    assert {int(name) for name, _ in spans_of(store, run.id)} == joined
    assert {store.run(trace_id(one)).id for one in joined} == {run.id}


def test_a_joined_run_is_due_again_and_loses_what_was_made_of_the_later(store):
    store.add_spans([span(1)])
    store.add_spans([span(2)])
    for number in (1, 2):
        store.keep(trace_id(number), 1, traces=[], rows=[], claims=[{"of": number}])
    assert store.due(0, now=time.time() + 1) == []
    store.add_spans([span(2, 2, links=(1,))])
    assert store.due(0, now=time.time() + 1) == [trace_id(1)]
    assert store.claims(trace_id(1)) == [{"of": 1}]
    store.keep(trace_id(2), 5, traces=[], rows=[], claims=[{"of": 2}])  # its scorer comes too late
    assert store.claims(trace_id(1)) == [{"of": 1}]
    assert store.verify() == []


def test_a_run_is_due_when_it_was_quiet_for_so_long(store):
    store.add_spans([span(1)])
    now = time.time()
    assert store.due(5, now=now) == []
    assert store.due(5, now=now + 6) == [trace_id(1)]
    store.keep(trace_id(1), 1, traces=[], rows=[])
    assert store.due(5, now=now + 6) == []
    store.add_spans([span(1, 2)])
    assert store.due(5, now=now + 6) == [trace_id(1)]


def test_of_runs_that_are_due_the_newest_comes_first(store):
    for number in (2, 3, 1):
        store.add_spans([span(number)])
    store.add_spans([span(2, 2)])
    assert store.due(0, now=time.time() + 1) == [trace_id(1), trace_id(3), trace_id(2)]


def test_spans_that_came_while_a_run_was_scored_keep_it_due(store):
    store.add_spans([span(1)])
    store.add_spans([span(1, 2)])
    store.keep(trace_id(1), 1, traces=[], rows=[])
    assert store.run(trace_id(1)).state == "receiving"
    assert store.due(0, now=time.time() + 1) == [trace_id(1)]


def test_the_envelopes_come_back_around_their_spans(store):
    first = ResourceSpans(schema_url="r1")
    first.resource.attributes.add(key="service.name").value.string_value = "team"
    scope = first.scope_spans.add(schema_url="s1")
    scope.scope.name = "library"
    envelopes = [first.SerializeToString(), ResourceSpans(schema_url="r2").SerializeToString(), b""]
    store.add_spans([span(1, n, envelope=envelopes[n % 3], text=str(n)) for n in range(6)])
    data = TracesData.FromString(store.otlp(trace_id(1)))
    names = [[one.name for one in r.scope_spans[0].spans] for r in data.resource_spans]
    assert names == [["0", "3"], ["1", "4"], ["2", "5"]]
    one = data.resource_spans[0]
    assert one.resource.attributes[0].value.string_value == "team"
    assert (one.schema_url, one.scope_spans[0].schema_url, one.scope_spans[0].scope.name) == (
        "r1",
        "s1",
        "library",
    )
    assert [len(resource.scope_spans) for resource in data.resource_spans] == [1, 1, 1]


def test_a_payload_of_any_length_comes_back(store):
    texts = {n: "x" * n for n in (0, 1, 126, 127, 128, 16_383, 16_384, 1_000_000)}
    for number, text in texts.items():
        payload = TracesData.FromString(b"").SerializeToString()
        one = span(1, number)._replace(payload=_named(1, number, text) + payload)
        store.add_spans([one])
    assert [name for _, name in spans_of(store, trace_id(1))] == list(texts.values())


def _named(trace: int, number: int, text: str) -> bytes:
    from opentelemetry.proto.trace.v1 import trace_pb2

    return trace_pb2.Span(
        trace_id=trace.to_bytes(16), span_id=number.to_bytes(8), name=text
    ).SerializeToString()


@pytest.mark.parametrize(
    "wrong",
    [
        {"trace_id": "abc"},
        {"trace_id": "g" * 32},
        {"span_id": "0" * 15},
        {"span_id": ""},
        {"links": ("\ud800" * 32,)},
    ],
)
def test_an_id_that_is_none_is_refused_with_all_that_came_with_it(store, wrong):
    with pytest.raises(UsageError, match="hex digits, found"):
        store.add_spans([span(1), span(1, 2)._replace(**wrong)])
    assert store.runs().total == 0


def test_ids_are_the_same_in_upper_case(store):
    upper = Span("AB" * 16, "CD" * 8, b"", b"x")
    store.add_spans([upper, upper._replace(trace_id="ab" * 16, span_id="cd" * 8)])
    assert store.runs().rows[0].id == "ab" * 16
    assert store.run("AB" * 16).spans == 1


@pytest.mark.parametrize("start", [-5, 0, 2**63, 2**64 - 1])
def test_hostile_names_and_times_do_no_harm(store, start):
    store.add_spans([span(1)._replace(name="a\x00b\ud800" + "x" * 10**6, start_ns=start)])
    assert store.runs().total == 1


def test_nothing_is_nothing(store):
    store.add_spans([])
    assert (store.runs().total, store.otlp("none"), store.run("none"), store.traces("none")) == (
        0,
        b"",
        None,
        [],
    )


def test_the_id_of_a_file_s_run_is_not_taken_over(store):
    from .conftest import trace

    store.add_traces([trace(trace_id(1))], origin="file")
    store.add_spans([span(1)])
    assert [run.id for run in store.runs().rows] == [f"{trace_id(1)}~2", trace_id(1)]
    assert len(spans_of(store, f"{trace_id(1)}~2")) == 1


def test_more_traces_than_are_remembered_stay_apart(store, monkeypatch):
    monkeypatch.setattr("counterpoint.store.receiving.REMEMBERED", 3)
    for _ in range(2):
        store.add_spans([span(n, envelope=bytes([0x1A, 1, n])) for n in range(1, 10)])
    assert [(run.spans, run.revision) for run in store.runs().rows] == [(1, 1)] * 9
