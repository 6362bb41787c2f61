"""Claims without a model: what is found in all that a text can be."""

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
        ("เขื่อนนี้เก่ามาก แม่น้ำสูงขึ้นทุกวัน ค่ะ", ["เขื่อนนี้เก่ามาก", "แม่น้ำสูงขึ้นทุกวัน ค่ะ"]),
        ("ទំនប់នេះចាស់ណាស់។ ទន្លេឡើងខ្ពស់។", ["ទំនប់នេះចាស់ណាស់។", "ទន្លេឡើងខ្ពស់។"]),
        ("ダムはとても古い 川は毎日上がる", ["ダムはとても古い", "川は毎日上がる"]),
        ("大坝很旧，河水每天上涨。", ["大坝很旧，河水每天上涨。"]),
        ("大坝在一九六二年建成，" * 9 + "河水每天上涨", ["大坝在一九六二年建成", "河水每天上涨"]),
        ('{"city": "Paris", "people": 2100000, "note": "The dam of Aldea broke."}',
         ["The dam of Aldea broke."]),
        ("Observation: {'temp': 21.5, 'wind': 'north'}\nIt is warm.", ["It is warm."]),
        ('[\n {\n  "name": "Dam of Aldea",\n  "cause": "Rain fell on it. It broke.",\n  "dead": 9\n }\n]',
         ["Rain fell on it.", "It broke."]),
        ('{"a": 1}\n{"a": 2}\n', []),
        ("The set {x: x > 0} is open.", ["The set {x: x > 0} is open."]),
        ("7", ["7"]),
        ("", []),
        (" \n\t", []),
    ],
)  # fmt: skip
def test_a_text_is_split_into_what_it_claims(text, claims):
    assert found(text) == claims


def test_no_claim_is_longer_than_a_paragraph():
    words = found("rain fell on the dam " * 100)
    assert " ".join(words) == ("rain fell on the dam " * 100).strip()
    assert [len(claim) <= 500 for claim in words] == [True] * 5
    assert found("Rain fell, " * 50 + "said 堤.")[0].endswith("Rain fell,")
    assert [len(claim) for claim in found("堤" * 450)] == [200, 50]
    assert found("x" * 2_000) == ["x" * 2_000]


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
    [
        "$" * 50_000,
        r"\[" * 25_000,
        "a, and " * 8_000,
        "a|b\n" * 12_000,
        "```" * 16_000,
        "a. " * 16_000,
        '{"a": ' * 16_000,
        "{'" * 32_000,
        '"a": "' * 16_000,
        "堤 " * 32_000,
        "堤，" * 32_000,
        "a: [" * 20_000,
        f"```\n{'x = 1; ' * 1_500}\n```\nso it goes on",  # blanked out: a long run of line breaks
        "\n" * 20_000 + "a",
        "\n " * 5_000 + "a",
    ],
)
def test_no_text_takes_forever(text, takes_at_most):
    assert takes_at_most(10, lambda: found(text))
