"""Claims without a model: what is found in all that a text can be."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.judges.sentences import Sentences


def found(text, **how):
    return [statement.text for statement in Sentences(**how)([text])[0].statements]


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("The dam is safe. It was built in 1962.", ["The dam is safe.", "It was built in 1962."]),
        ("The U.S. has 3.5 million of them. Dr. Smith didn't agree!",
         ["The U.S. has 3.5 million of them.", "Dr. Smith didn't agree!"]),
        ("Rain fell; the dam is not safe.", ["Rain fell", "the dam is not safe."]),
        ("The dam is old, and the river has risen.", ["The dam is old", "the river has risen."]),
        ("The dam is old, and it has cracks.", ["The dam is old, and it has cracks."]),
        ("Apples, pears, and figs are red.", ["Apples, pears, and figs are red."]),
        ("Is the dam safe? I agree. They do. Yes.", []),
        ("Here is my plan:\n1. Measure the water level.\n2. Close the gates.",
         ["Measure the water level.", "Close the gates."]),
        ("**Answer:** 42 is right.\n- *first* point\n- second point",
         ["Answer: 42 is right.", "first point", "second point"]),
        ("A line that\ngoes on. Another claim", ["A line that\ngoes on.", "Another claim"]),
        ("Water is wet. Water is wet.", ["Water is wet."]),
        ("Before.\n```python\nx = 1. y\nprint('a. b')\n```\nAfter the code.", ["Before.", "After the code."]),
        ("```\nnever closed. code", []),
        ("| city | people |\n|---|---|\n| Paris | 2.1 |\n| Rome | 2.8 |", ["Paris | 2.1", "Rome | 2.8"]),
        (r"We have \[x = 1. y; z\] and $a. b$ here. So $c=2$.",
         [r"We have \[x = 1. y; z\] and $a. b$ here.", "So $c=2$."]),
        ("See https://a.b/c?d=e.f for it.", ["See https://a.b/c?d=e.f for it."]),
        ("这是第一句。这不是第二句！第三句？", ["这是第一句。", "这不是第二句！"]),
        ("Это плотина. Она старая?", ["Это плотина."]),
        ("هذه جملة عن السد. هل هذه جملة؟", ["هذه جملة عن السد."]),
        ("यह बाँध पुराना है। नदी ऊँची है।", ["यह बाँध पुराना है।", "नदी ऊँची है।"]),
        ("7", ["7"]),
        ("", []),
        (" \n\t", []),
    ],
)  # fmt: skip
def test_a_text_is_split_into_what_it_claims(text, claims):
    assert found(text) == claims


def test_a_cap_is_held_and_counted():
    (decomposed,) = Sentences(cap=2)(["One cat sat. Two dogs ran. Three birds flew."])
    assert [statement.text for statement in decomposed.statements] == ["One cat sat.", "Two dogs ran."]
    assert decomposed.capped == 1


def test_the_identity_says_that_this_is_a_heuristic():
    assert "heuristic" in Sentences().id
    assert Sentences(cap=3).id.endswith("at most 3")


@given(st.text(alphabet=st.sampled_from("aB1 .;,?!\n|-*$`\\[](){}#:。？\ud800\x00é—~>"), max_size=80))
def test_every_statement_stands_where_it_says(text):
    (decomposed,) = Sentences()([text])
    last = 0
    for statement in decomposed.statements:
        assert last <= statement.start < statement.end <= len(text)
        written = text[statement.start : statement.end].replace("\ud800", "\ufffd")
        assert statement.text.replace("*", "") == written.replace("*", "")
        last = statement.end


@pytest.mark.parametrize(
    "text",
    ["$" * 50_000, r"\[" * 25_000, "a, and " * 8_000, "a|b\n" * 12_000, "```" * 16_000, "a. " * 16_000],
)
def test_no_text_takes_forever(text):
    start = time.perf_counter()
    found(text)
    assert time.perf_counter() - start < 10
