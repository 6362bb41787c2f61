import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import TraceError
from counterpoint.json_text import parse_json
from counterpoint.trace import (
    Call,
    Step,
    Trace,
    Transfer,
    Usage,
    decode,
    encode,
    json_schema,
    select_agents,
    task_id,
    tidy,
)


def trace(*steps: Step, **fields: object) -> Trace:
    return Trace("t", steps, **fields)  # type: ignore[arg-type]


def said(name: str, agent: str, *heard: str, **fields: object) -> Step:
    return Step(name, agent, f"text of {name}", heard=tuple(map(Transfer, heard)), **fields)  # type: ignore[arg-type]


def rounds(found: Trace) -> list[int | None]:
    return [step.round for step in found.steps]


def test_a_round_without_record_is_derived_from_own_turns_and_what_was_heard():
    found = tidy(trace(said("a1", "A"), said("b1", "B", "a1"), said("a2", "A", "b1"), said("b2", "B", "a2")))
    assert rounds(found) == [0, 0, 1, 1]
    assert [step.heard[0].scope for step in found.steps[1:]] == ["within", "across", "within"]


def test_one_who_only_listens_speaks_in_the_round_of_the_latest_text_heard():
    found = tidy(trace(said("a1", "A"), said("a2", "A"), said("b1", "B", "a1", "a2")))
    assert rounds(found) == [0, 1, 1]
    assert [transfer.scope for transfer in found.steps[2].heard] == ["across", "within"]


def test_a_recorded_round_is_kept_and_decides_the_scope():
    found = tidy(trace(said("a1", "A", round=3), said("b1", "B", "a1", round=4)))
    assert rounds(found) == [3, 4]
    assert found.steps[1].heard[0].scope == "across"


def test_control_steps_do_not_open_a_new_round_for_their_agent():
    found = tidy(trace(said("c1", "A", kind="control"), said("a1", "A"), said("a2", "A")))
    assert rounds(found) == [0, 0, 1]


@pytest.mark.parametrize(
    ("heard", "why"),
    [("nowhere", "not in the trace"), ("b1", "later than it"), ("a1", "later than it")],
)
def test_a_transfer_from_nowhere_or_the_future_is_dropped_with_a_warning(heard: str, why: str):
    found = tidy(trace(said("a1", "A", heard), said("b1", "B", "a1")))
    assert found.steps[0].heard == ()
    assert found.warnings == (f"step 'a1' hears '{heard}', which is {why}: transfer dropped",)


def test_a_transfer_to_a_lower_round_is_dropped_with_a_warning():
    found = tidy(trace(said("a1", "A", round=2), said("b1", "B", "a1", round=1)))
    assert found.steps[1].heard == ()
    assert "cannot hear 'a1'" in found.warnings[0]


def test_a_second_step_of_the_same_id_is_renamed_and_heard_by_later_ones():
    found = tidy(trace(said("x", "A"), said("x", "B", "x"), said("y", "C", "x")))
    assert [step.id for step in found.steps] == ["x", "x~2", "y"]
    assert [step.heard[0].source for step in found.steps[1:]] == ["x", "x~2"]
    assert "stands twice" in found.warnings[0]


def test_several_transfers_from_one_source_become_the_strongest():
    heard = (
        Transfer("a", evidence="sequence"),
        Transfer("a", evidence="call"),
        Transfer("a", evidence="nesting"),
    )
    found = tidy(trace(said("a", "A"), Step("b", "B", "", heard=heard)))
    assert found.steps[1].heard == (Transfer("a", "within", "call"),)


def test_tidying_twice_changes_nothing_more():
    once = tidy(trace(said("x", "A", "y"), said("x", "B", "x"), said("y", "A", "x")))
    assert tidy(once) == once


names = st.sampled_from(["a", "b", "c", "d"])
steps = st.builds(
    Step,
    id=names,
    agent=names,
    text=st.text(max_size=5),
    kind=st.sampled_from(["task", "agent", "tool", "control", "decision"]),
    round=st.none() | st.integers(0, 3),
    heard=st.lists(st.builds(Transfer, names), max_size=3).map(tuple),
)


@given(st.lists(steps, max_size=8).map(tuple))
def test_tidy_keeps_every_step_and_hears_only_earlier_ones_of_no_higher_round(made: tuple[Step, ...]):
    found = tidy(Trace("t", made))
    assert [step.text for step in found.steps] == [step.text for step in made]
    place = {step.id: number for number, step in enumerate(found.steps)}
    assert len(place) == len(made)
    for number, step in enumerate(found.steps):
        for transfer in step.heard:
            source = found.steps[place[transfer.source]]
            assert place[transfer.source] < number
            assert source.round is not None
            assert step.round is not None
            assert source.round <= step.round
            assert (transfer.scope == "within") == (source.round == step.round)
    assert tidy(found) == found


def test_a_native_line_round_trips_exactly():
    whole = tidy(
        Trace(
            "t",
            (
                Step("s1", "A", "ü ✈", kind="task"),
                Step(
                    "s2", "B", "x", role="r", prompt="p", heard=(Transfer("s1"),),
                    calls=(Call("c", "search", "{}", result="r", error="e", started_at=1.0, ended_at=2.0),),
                    answer="4", started_at=1.5, ended_at=2.5,
                    usage=Usage(1, 2, 3, 4, 0.5, "m"), error="boom",
                ),
            ),
            task="2+2?", gold="4", answer="4", correct=True, benchmark="b", system="s", source="x",
            labels={"seed": 1, "nested": {"a": [1, None]}}, warnings=("w",),
        )
    )  # fmt: skip
    assert decode(msgspec.json.decode(encode(whole))) == whole


def test_the_smallest_native_record_needs_only_ids_agents_and_texts():
    found = decode(
        {
            "id": 7,
            "steps": [
                {"id": 1, "agent": "A", "text": None},
                {"id": "2", "agent": "B", "text": "x", "heard": ["1"]},
            ],
        }
    )
    assert found.id == "7"
    assert found.steps[1].heard == (Transfer("1", "within", "explicit"),)
    assert found.steps[0].text == ""


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "a trace is a JSON object, found list"),
        ({"steps": []}, 'a native trace has no "id" (found: steps)'),
        ({"id": "t"}, 'a native trace has no "steps" (found: id)'),
        ({"id": "t", "steps": {}}, '"steps" is a list of steps, found dict'),
        ({"id": "t", "steps": ["x"]}, "step 1 is not a JSON object but str"),
        (
            {"id": "t", "steps": [{"id": "1", "name": "A", "content": "x"}]},
            'step 1 has no "agent" (found: id, name, content). A chat list? Try --from chat',
        ),
        (
            {"id": "t", "steps": [{"id": "1", "agent": "A", "text": "", "round": "one"}]},
            "not a native trace: Expected `int | null`, got `str` - at step 1.round",
        ),
        (
            {"id": "t", "steps": [{"id": "1", "agent": "A", "text": "", "kind": "boss"}]},
            "not a native trace: Invalid enum value 'boss' - at step 1.kind",
        ),
        ({"schema": "counterpoint.trace/9", "id": "t", "steps": []}, "schema 'counterpoint.trace/9' is not"),
    ],
)
def test_a_faulty_record_is_one_line_that_says_where_and_what(record: object, message: str):
    with pytest.raises(TraceError) as caught:
        decode(record, source="f.jsonl", number=12)
    assert str(caught.value).startswith("f.jsonl: record 12: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_keys_warn_once():
    steps = [{"id": str(number), "agent": "A", "text": "", "color": "red"} for number in range(3)]
    found = decode({"id": "t", "extra": 1, "steps": steps})
    assert found.warnings == (
        "unknown keys of the trace were left out: extra",
        "unknown keys of steps were left out: color",
    )


def test_lone_surrogates_and_nan_are_mended_with_a_warning():
    value, warnings = parse_json(b'{"a": "ok \\ud83d", "b": NaN, "c": [1e999], "\\ud83d": 1}')
    assert value == {"a": "ok \ufffd", "b": None, "c": [None], "\ufffd": 1}
    assert len(warnings) == 2


def test_a_surrogate_in_a_text_can_be_written():
    assert b"ok" in encode(trace(Step("s", "A", "ok \ud83d")))


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe\x00", b"[1,", b"not json", b'{"a": ' * 5000])
def test_what_is_not_json_is_a_value_error(text: bytes):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_agents_can_be_left_out_and_renamed():
    whole = trace(said("a", "A"), said("b", "B", "a"), said("c", "C", "a", "b"))
    found = select_agents(whole, exclude=["A"], rename={"C": "B"})
    assert [(step.agent, [transfer.source for transfer in step.heard]) for step in found.steps] == [
        ("B", []),
        ("B", ["b"]),
    ]
    assert tidy(found).warnings == ()


def test_the_task_id_is_the_label_else_the_text_else_the_trace_itself():
    assert task_id(trace(labels={"task_id": 7})) == "7"
    assert task_id(trace(task="2+2?")) == task_id(trace(task="2+2?")) != task_id(trace(task="2+3?"))
    assert task_id(trace()) == "trace:t"


def test_the_schema_accepts_what_encode_writes():
    jsonschema = pytest.importorskip("jsonschema")
    line = json.loads(encode(tidy(trace(said("a", "A"), said("b", "B", "a"), labels={"x": 1}))))
    jsonschema.validate(line, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"id": "t"}, json_schema())
