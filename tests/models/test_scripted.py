"""The scripted model in process."""

from __future__ import annotations

import itertools
import threading

import pytest

from counterpoint.contracts import Reply
from counterpoint.errors import ModelError, UsageError
from counterpoint.models.scripted import Fault, Scripted, ToolCall, Turn

QUESTION = [{"role": "user", "content": "What is 3 + 4?"}]


def test_replies_come_in_order_and_the_end_is_an_error():
    model = Scripted(["three", "four"])
    assert [model(QUESTION).text, model(QUESTION).text] == ["three", "four"]
    with pytest.raises(ModelError, match="at its end: it has 2 replies"):
        model(QUESTION)


def test_one_text_is_said_for_ever():
    model = Scripted("7")
    assert [model(QUESTION).text for _ in range(3)] == ["7", "7", "7"]


def test_any_iterable_will_do():
    model = Scripted(itertools.cycle("ab"))
    assert [model(QUESTION).text for _ in range(3)] == ["a", "b", "a"]


def test_a_function_sees_the_messages():
    model = Scripted(lambda messages: messages[-1]["content"].upper())
    assert model(QUESTION).text == "WHAT IS 3 + 4?"


def test_tokens_are_words_and_marks_unless_said_otherwise():
    model = Scripted(["The answer is 7.", Reply("7", tokens_in=100, tokens_out=0)])
    first, second = model(QUESTION), model(QUESTION)
    assert (first.tokens_in, first.tokens_out) == (6, 5)
    assert (second.tokens_in, second.tokens_out) == (100, 0)


def test_the_log_keeps_what_was_asked():
    model = Scripted("7")
    model(QUESTION)
    assert model.requests == [QUESTION]


def test_a_refusal_is_a_text_here():
    assert Scripted(Turn(refusal="No."))(QUESTION).text == "No."


@pytest.mark.parametrize("fault", [Fault.rate_limited(), Fault.garbage(), Fault.dropped(), Fault.stall(60)])
def test_a_fault_is_a_model_error_at_once(fault):
    with pytest.raises(ModelError, match="scripted fault"):
        Scripted([fault])(QUESTION)


@pytest.mark.parametrize("line", [7, None, {"text": "7"}, [], ["7"]])
def test_something_else_is_named(line):
    with pytest.raises(UsageError, match="a scripted reply is a str"):
        Scripted([line])(QUESTION)


def test_tool_calls_need_the_server():
    with pytest.raises(UsageError, match="use the server"):
        Scripted(ToolCall("add"))(QUESTION)


def test_threads_share_a_script_without_losing_or_repeating_a_reply():
    model = Scripted([str(number) for number in range(100)])
    said = []
    threads = [
        threading.Thread(target=lambda: said.extend(model(QUESTION).text for _ in range(25)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, said)) == list(range(100))


def test_a_reply_is_given_with_all_that_it_says_of_its_usage():
    said = Reply("7", 100, 30, "m", "stop", 64, 20, 0.5)
    assert Scripted(said)(QUESTION) == said
