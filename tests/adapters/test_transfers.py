"""The shared machinery behind all adapters: who heard whom, and how that is known."""

from __future__ import annotations

import random
from typing import Any

import pytest

from counterpoint.adapters import _containment
from counterpoint.adapters._transfers import (
    Message,
    Turn,
    add_broadcast,
    add_context,
    add_sequence,
    to_trace,
)
from counterpoint.trace import Trace

DRAFT = "The bridge should be closed for repairs in the first week of May."
REVIEW = "Please also say which road drivers are to take during the repairs."


def edges(turns: list[Turn]) -> set[tuple[str, str, str]]:
    return {(source, turn.id, evidence) for turn in turns for source, evidence in turn.heard.items()}


def reader(id: str, agent: str, *messages: Message | str, text: str = "") -> Turn:
    shown = [Message(message) if isinstance(message, str) else message for message in messages]
    return Turn(id, agent, text, shown=[shown])


@pytest.mark.parametrize(
    "pasted",
    [
        DRAFT,
        f"Judge this: {DRAFT} Be brief.",
        f"Judge this:\n> **{DRAFT.replace(' ', chr(10) + '> ')}**",
        '{"draft": "The bridge should be closed\\nfor repairs in the first week of \\u004day."}',
        DRAFT.upper(),
    ],
)
def test_a_text_pasted_into_a_prompt_is_found_however_it_is_wrapped(pasted: str) -> None:
    turns = [Turn("1", "writer", DRAFT), reader("2", "critic", "You judge drafts.", pasted)]
    add_context(turns)
    assert edges(turns) == {("1", "2", "context")}


def test_a_short_text_is_found_as_a_whole_message_only() -> None:
    turns = [Turn("1", "a", "Yes."), reader("2", "b", "Yes."), reader("3", "c", "Was it Yes. or no?")]
    add_context(turns)
    assert edges(turns) == {("1", "2", "context")}


def test_a_message_id_is_enough_even_where_the_text_was_changed() -> None:
    turns = [
        Turn("1", "a", "Yes.", said=[Message("Yes.", keys=("m1",))]),
        reader("2", "b", Message("[cut]", keys=("m1",))),
    ]
    add_context(turns)
    assert edges(turns) == {("1", "2", "context")}


def test_of_two_producers_of_one_text_the_latest_is_heard() -> None:
    turns = [Turn("1", "a", DRAFT), Turn("2", "b", DRAFT), reader("3", "c", f"Judge: {DRAFT}")]
    add_context(turns)
    assert edges(turns) == {("2", "3", "context")}


def test_a_text_that_was_delivered_twice_was_heard_from_both() -> None:
    turns = [Turn("1", "a", DRAFT), Turn("2", "b", DRAFT), reader("3", "c", DRAFT, DRAFT)]
    add_context(turns)
    assert edges(turns) == {("1", "3", "context"), ("2", "3", "context")}


def test_a_quotation_is_heard_from_the_one_who_quotes() -> None:
    quoting = f'He wrote "{DRAFT}" and I agree with that.'
    turns = [Turn("1", "a", DRAFT), reader("2", "b", DRAFT, text=quoting), reader("3", "c", quoting)]
    add_context(turns)
    assert edges(turns) == {("1", "2", "context"), ("2", "3", "context")}


def test_a_shared_list_is_news_only_from_the_readers_last_turn_on() -> None:
    turns = [
        Turn("a1", "a", DRAFT),
        reader("b1", "b", DRAFT, text=REVIEW),
        reader("c1", "c", DRAFT, REVIEW, text="Noted by c."),
        reader("b2", "b", DRAFT, Message(REVIEW, role="assistant"), "Noted by c."),
    ]
    add_context(turns)
    assert {edge for edge in edges(turns) if edge[1] == "b2"} == {
        ("b1", "b2", "context"),
        ("c1", "b2", "context"),
    }


def test_a_prompt_that_is_built_anew_counts_each_time() -> None:
    turns = [
        Turn("a1", "a", DRAFT),
        reader("b1", "b", f"Plan: {DRAFT}", text=REVIEW),
        reader("b2", "b", f"Plan: {DRAFT}"),
    ]
    add_context(turns)
    assert edges(turns) == {("a1", "b1", "context"), ("a1", "b2", "context")}


def test_an_agent_that_repeats_the_task_is_not_its_producer() -> None:
    turns = [Turn("1", "a", DRAFT), reader("2", "b", f"Task: {DRAFT}")]
    add_context(turns, given=[DRAFT])
    assert edges(turns) == set()


def test_a_control_turn_reads_and_hands_nothing_on() -> None:
    turns = [
        Turn("1", "a", DRAFT),
        Turn("2", "selector", REVIEW, kind="control", shown=[[Message(DRAFT)]]),
        reader("3", "b", REVIEW),
    ]
    add_context(turns)
    add_broadcast(turns)
    assert edges(turns) == {("1", "2", "context"), ("1", "3", "broadcast")}


def test_shared_chat_is_heard_since_the_own_last_turn() -> None:
    turns = [Turn(str(number), agent, "hi") for number, agent in enumerate("abcab")]
    add_broadcast(turns)
    assert {(source, turn.id) for turn in turns for source in turn.heard} == {
        ("0", "1"), ("0", "2"), ("1", "2"), ("1", "3"), ("2", "3"), ("2", "4"), ("3", "4"),
    }  # fmt: skip


def test_a_control_turn_takes_nothing_from_what_its_agent_hears() -> None:
    turns = [
        Turn("0", "worker", "done"),
        Turn("1", "boss", "the worker is done", kind="control"),
        Turn("2", "boss", "next, please"),
        Turn("3", "boss", "waiting", kind="control"),
        Turn("4", "worker", "done again"),
    ]
    add_broadcast(turns)
    assert edges(turns) == {
        ("0", "1", "broadcast"), ("0", "2", "broadcast"), ("2", "4", "broadcast"),
    }  # fmt: skip


def test_order_counts_only_where_nothing_else_was_heard() -> None:
    turns = [
        Turn("1", "a", "x"),
        Turn("2", "b", "y"),
        Turn("3", "c", "z", heard={"1": "explicit"}),
        Turn("4", "c"),
    ]
    add_sequence(turns)
    assert edges(turns) == {("1", "2", "sequence"), ("1", "3", "explicit")}


def test_the_strongest_evidence_of_a_source_stays() -> None:
    turn = Turn("2", "b")
    for evidence in ("broadcast", "explicit", "context"):
        turn.hear("1", evidence)  # type: ignore[arg-type]
    trace = to_trace([Turn("1", "a", "x"), turn], id="run", system="s")
    assert isinstance(trace, Trace)
    assert [(t.source, t.evidence) for t in trace.steps[1].heard] == [("1", "explicit")]


def test_containment_agrees_with_naive_search_on_random_texts() -> None:
    rng = random.Random(7)
    words = [bytes(rng.choices(b"abc", k=5)) for _ in range(12)]

    def text(count: int) -> bytes:
        return b"".join(rng.choices(words, k=count))

    needles = sorted({text(rng.randint(3, 12)) for _ in range(60)})
    haystacks = [text(rng.randint(0, 60)) for _ in range(80)]
    for haystack, found in zip(haystacks, _containment.Needles(needles).find(haystacks), strict=True):
        naive = {
            (start, start + len(needle), index)
            for index, needle in enumerate(needles)
            if len(needle) >= 16
            for start in range(len(haystack))
            if haystack.startswith(needle, start)
        }
        assert set(found) == naive


def test_a_megabyte_and_thousands_of_near_equal_texts_take_no_all_pairs(takes_at_most: Any) -> None:
    texts = [
        f"Report of worker {number}: all of the machines in the hall are running well. "
        for number in range(3000)
    ]

    def hear() -> None:
        turns = [Turn(str(number), f"w{number}", text) for number, text in enumerate(texts)]
        turns.append(reader("end", "chief", "x" * 1_000_000 + "".join(texts)))
        add_context(turns)
        assert len(turns[-1].heard) == 3000

    assert takes_at_most(5, hear)
