"""The simulated model: what its parameters do, and that it looks at what it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from counterpoint.answers import read_answer
from counterpoint.contracts import Example
from counterpoint.errors import ModelError, UsageError
from counterpoint.models.simulated import Simulated

SUMS = [Example(f"q{n}", f"What is {n} plus {n}, please?", str(2 * n)) for n in range(400)]
OPTIONS = {"A": "one", "B": "two", "C": "three"}
LETTERS = [Example(f"c{n}", f"Choose for case {n}.", "B", "choice", OPTIONS) for n in range(200)]


def request(example: Example, *heard: str, system: str = "You are the solver.") -> list[dict[str, Any]]:
    said = "\n\n".join(f"[agent{number}]\n{text}" for number, text in enumerate(heard))
    user = f'{said}\n\n{example.task}\n\nEnd with "The answer is <number>".'
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def answers(model: Simulated, examples: Sequence[Example], *heard: str, **more: str) -> list[str | None]:
    return [
        read_answer(model(request(example, *heard, **more)).text, kind=example.kind) for example in examples
    ]


def share_right(found: Sequence[str | None], examples: Sequence[Example]) -> float:
    right = [answer == example.gold for answer, example in zip(found, examples, strict=True)]
    return sum(right) / len(examples)


@pytest.mark.parametrize("examples", [SUMS, LETTERS], ids=["number", "choice"])
@pytest.mark.parametrize("accuracy", [0.0, 0.7, 1.0])
def test_alone_it_is_right_as_often_as_its_accuracy_says(examples, accuracy):
    found = answers(Simulated(examples, accuracy=accuracy), examples)
    assert share_right(found, examples) == pytest.approx(accuracy, abs=0.0 if accuracy in (0, 1) else 0.08)
    assert None not in found


def test_the_same_request_has_the_same_reply_and_another_seed_another():
    one, same, other = (Simulated(SUMS, seed=seed) for seed in (1, 1, 2))
    assert [one(request(q)) for q in SUMS[:50]] == [same(request(q)) for q in SUMS[:50]]
    assert answers(one, SUMS[:50]) != answers(other, SUMS[:50])


def test_a_copier_takes_the_most_frequent_answer_that_it_hears():
    model = Simulated(SUMS, copying=1, stubbornness=0)
    heard = ("The answer is 7", "Hm.\n\nThe answer is 9", "I say: the answer is 9")
    assert set(answers(model, SUMS[50:100], *heard)) == {"9"}


def test_of_one_speaker_the_last_answer_counts_once():
    model = Simulated(SUMS, copying=1, stubbornness=0)
    heard = ("The answer is 9\nThe program was run. The answer is 9", "The answer is 7", "The answer is 7")
    assert set(answers(model, SUMS[50:100], *heard)) == {"7"}


def test_a_copier_repeats_the_words_of_whom_it_copies():
    model = Simulated(SUMS, copying=1, stubbornness=0, verbosity=6)
    reply = model(request(SUMS[0], "Seven swans a-swimming, six geese a-laying\n\nThe answer is 7"))
    assert reply.text == "Seven swans a-swimming, six geese a-laying\n\nThe answer is 7"


def test_a_stubborn_one_keeps_its_belief_whatever_it_hears():
    model = Simulated(SUMS, copying=1, stubbornness=1)
    assert answers(model, SUMS) == answers(model, SUMS, "The answer is 1", "The answer is 1")


def test_who_neither_copies_nor_is_stubborn_thinks_again():
    model = Simulated(SUMS, accuracy=0.5, copying=0, stubbornness=0)
    alone, moved = answers(model, SUMS), answers(model, SUMS, "The answer is 100000")
    assert "100000" not in moved
    assert alone != moved
    assert share_right(moved, SUMS) == pytest.approx(0.5, abs=0.08)


def test_agents_differ_by_their_system_prompt_and_may_be_wrong_alike():
    model = Simulated(SUMS, accuracy=0.3)
    one, two = answers(model, SUMS, system="You are Ann."), answers(model, SUMS, system="You are Ben.")
    wrong = [pair for pair in zip(one, two, SUMS, strict=True) if pair[2].gold not in pair[:2]]
    alike = sum(first == second for first, second, _ in wrong) / len(wrong)
    assert one != two
    assert 0.1 < alike < 0.4


def test_an_adversary_is_always_wrong_and_unmoved():
    model = Simulated(SUMS, accuracy=1, copying=1, stubbornness=0)
    system = "You are the adversary of a team."
    found = answers(model, SUMS, system=system)
    assert share_right(found, SUMS) == 0
    assert found == answers(model, SUMS, "The answer is 1", system=system)


def test_who_is_asked_for_a_program_writes_one():
    model = Simulated(SUMS, accuracy=1)
    text = model(request(SUMS[3], system="Write a program fenced with ```python.")).text
    assert "```python\nanswer = '6'\n```" in text
    assert text.endswith("The answer is 6")


@pytest.mark.parametrize("verbosity", [0, 1, 30])
def test_verbosity_is_the_number_of_words_before_the_answer(verbosity):
    reply = Simulated(SUMS, verbosity=verbosity)(request(SUMS[0]))
    words = reply.text.rpartition("The answer is")[0].split()
    assert len(words) == verbosity
    assert reply.tokens_out == verbosity + 4 + (read_answer(reply.text) or "").count("-")


def test_the_longest_task_that_stands_there_is_the_one_that_is_asked():
    short, long = Example("s", "What is 1?", "1"), Example("l", "Ann asks: What is 1? Add 1.", "2")
    assert answers(Simulated([short, long], accuracy=1), [long, short]) == ["2", "1"]


def test_the_form_of_an_answer_is_no_answer():
    model = Simulated(SUMS, copying=1, stubbornness=0)
    assert answers(model, SUMS[:50]) == answers(Simulated(SUMS, copying=0, stubbornness=1), SUMS[:50])


def test_a_question_that_it_does_not_know_is_an_error():
    with pytest.raises(ModelError, match="none of them was asked"):
        Simulated(SUMS)([{"role": "user", "content": "What is the weather?"}])


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"accuracy": 1.1}, "accuracy"),
        ({"accuracy": "high"}, "accuracy"),
        ({"accuracy": True}, "accuracy"),
        ({"copying": -1}, "copying"),
        ({"stubbornness": float("nan")}, "stubbornness"),
        ({"verbosity": -1}, "verbosity"),
        ({"verbosity": 2.5}, "verbosity"),
    ],
)
def test_parameters_that_cannot_be_are_named(parameters, told):
    with pytest.raises(UsageError, match=f"{told} of a simulated model"):
        Simulated(SUMS, **parameters)
