"""Reading answers out of text and comparing them: awkward replies by table, hostile text."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.answers import infer_kind, read_answer, read_number, read_options, same_answer
from counterpoint.errors import UsageError

NUMBERS: list[tuple[str, str | None]] = [
    # answer lines
    ("**Answer:** 42", "42"),
    ("__Final Answer__: 42", "42"),
    ("The correct answer is **42**.", "42"),
    ("the BEST ANSWER = 42", "42"),
    (r"ANSWER: \$460", "460"),
    ("The answer is: $1,234.50.", "1234.5"),
    ("The answer is 70,000", "70000"),
    ("The answer is 64.0", "64"),
    ("The answer is -3.", "-3"),
    ("The answer is −3", "-3"),
    ("The answer is –3", "-3"),
    ("The answer is - 3", "-3"),
    ("The answer is -$5", "-5"),
    ("The answer is $-5", "-5"),
    ("The answer is +5", "5"),
    ("The answer is .5", "0.5"),
    ("The answer is -0", "0"),
    ("The answer is ４２", "42"),
    ("The answer is ٤٢", "42"),
    ("The answer is 1/2", "1/2"),
    ("The answer is 2/4 cup", "1/2"),
    ("The answer is 1 1/2 cups", "3/2"),
    ("The answer is 1½", "3/2"),
    ("The answer is 1 000", "1000"),
    ("The answer is 1\u202f000\u202f000", "1000000"),
    ("The answer is 1.5e3", "1500"),
    ("The answer is 1.5 × 10^3", "1500"),
    (r"The answer is $1.5 \times 10^{-3}$", "0.0015"),
    ("The answer is 10²", "100"),
    ("The answer is 25%", "25"),
    (r"The answer is \(25\%\)", "25"),
    ("The answer is US$5 million", "5000000"),
    ("The answer is 35cm", "35"),
    ("The answer is 35 cm² of cloth", "35"),
    ("The answer is 5!", "5"),
    ("The answer is that Ann has 18 eggs.", "18"),
    ("The answer is the 2nd one, 12", "12"),
    ("The answer is from step 3: 12", "12"),
    ("The answer is 3 + 4 = 7", "7"),
    ("The answer is x = 7 apples", "7"),
    ("The answer is 7 = x", "7"),
    ("The answer is 5 because 2 + 2 = 4", "5"),
    ("The answer is 5. Check: 2 + 2 = 4.", "5"),
    ("The answer is 5. Wait, the answer is 6.", "6"),
    ("The answer is 5. The answer is not 6.", "5"),
    ("Answer: 7, not 8", "7"),
    ("**Answer:**\n\n42", "42"),
    ("The answer is:\n\n$$\n42\n$$", "42"),
    ("Answer:\n- 42 clips", "42"),
    ("Answer:\n\\[\nx = 42\n\\]", "42"),
    ("```\nanswer = round(total, 2)\n```\nthe answer is 15.50", "15.5"),
    # boxes
    (r"\boxed{8,000}", "8000"),
    (r"\boxed{$9{,}500}", "9500"),
    (r"\boxed{9\,500}", "9500"),
    (r"\boxed{10,\!000}", "10000"),
    (r"\boxed{35\text{ cm}}", "35"),
    (r"\boxed{35\,\mathrm{cm}^2}", "35"),
    (r"\boxed{90^\circ}", "90"),
    (r"\boxed{\frac{1}{2}}", "1/2"),
    (r"\boxed{-\dfrac{1}{2}}", "-1/2"),
    (r"\boxed{\tfrac12}", "1/2"),
    (r"\boxed{1\frac{1}{2}}", "3/2"),
    (r"\boxed{x = 5}", "5"),
    (r"\boxed{- 3}", "-3"),
    (r"\boxed{\boxed{42}}", "42"),
    (r"first \boxed{3}, then \boxed{4}", "4"),
    (r"The answer is $\boxed{42}$.", "42"),
    (r"\fbox{42}", "42"),
    (r"\boxed 7$", "7"),
    (r"so it is \boxed{42", "42"),
    (r"so it is \boxed{42 and th", None),
    (r"\boxed{}", None),
    (r"\boxed{2\sqrt{3}}", r"2\sqrt{3}"),
    (r"\boxed{x = 2\pi}", r"2\pi"),
    (r"\boxed{3, 4}", None),
    (r"\boxed{3 \text{ or } 4}", None),
    (r"\boxed{\pm 3}", None),
    # JSON, ####, bare
    ('{"answer": 12}', "12"),
    ('{"thought": "3 or 4", "final_answer": "$12"}', "12"),
    (r"{\"answer\": \"12 clips\"}", "12"),
    ("{'answer': '3 + 4 = 7'}", "7"),
    ('{"answer": "Look at the end of 2022 again"}', None),
    ('{"answer": null}', None),
    ("24 + 48 = 72\n#### 72", "72"),
    ("#### 1,000", "1000"),
    ("#### -10", "-10"),
    ("#### Step 3: foo", None),
    ("#### 3 Approaches", None),
    ("##### 3", None),
    ("42", "42"),
    ("-3", "-3"),
    ("$42$", "42"),
    ("**42.**", "42"),
    ("42 apples", "42"),
    # no commitment
    ("", None),
    ("I do not know.", None),
    ("The total is 72 clips, altogether.", None),
    ("is $29.00.", None),
    ("The answer is not 5", None),
    ("The answer isn't 5", None),
    ("The incorrect answer is 5", None),
    ("If the answer is 5, then all is well", None),
    ("Their answer is wrong, it should be 7", None),
    ("The answer is 3 or 4", None),
    ("The answer is between 3 and 5", None),
    ("The answer is 3-5.", None),
    ("The answer is 3, 4, and 5", None),
    ("The answer is 3 + 4", None),
    ("The answer is 2x", None),
    ("The answer is x^2", None),
    ("The answer is 5:30", None),
    ("The answer is 1.2.3", None),
    ("The answer is 12,5", None),
    ("The answer is 1,2345", None),
    ("The answer is 1/0", None),
    ("The answer is 1e999999999", None),
    ("The answer is 1e99999999999999999999", None),
    ("The answer is " + "9" * 5000, None),
    ("The answer is None.", None),
    ("unanswered: 5", None),
    ("The answers are 5", None),
    ("答案是 7", None),
    # error messages
    ("the answer is SyntaxError: invalid syntax (<string>, line 3)", None),
    ("the answer is invalid syntax (<string>, line 3)", None),
    ("the answer is KeyError: 3", None),
    ("line 3", None),
]

CHOICES: list[tuple[str, str | None]] = [
    ("The answer is B because a car moves.", "B"),
    ("The answer is A) Five Hundred", "A"),
    ("Answer: (B)", "B"),
    ("**A", "A"),
    ("The answer is **C**.", "C"),
    ("The best answer is \\(D\\).", "D"),
    ("answer: b", "B"),
    ("The answer is option C: 12", "C"),
    ("The answer is Paris (B).", "B"),
    ("The answer is A because 2 + 2 = 4", "A"),
    ("The answer is B, not C.", "B"),
    ("My answer is (D).\n\n[[4, 4, 2]]", "D"),
    (r"\boxed{B}", "B"),
    (r"\boxed{\text{B}}", "B"),
    (r"\boxed{\textbf{(B)} 12}", "B"),
    ('{"answer": "B"}', "B"),
    ('{"answer": "B) osmosis"}', "B"),
    ('{"answer": "go to section A and look"}', None),
    ("#### B", "B"),
    ("#### A) Introduction", None),
    ("**Answer:**\n\n(E)", "E"),
    ("A", "A"),
    ("(c)", "C"),
    ("Option B", "B"),
    ("**(C) osmosis**", "C"),
    ("the correct answer is not B", None),
    ("the answer is neither A nor B", None),
    ("the answer is either (B), (C), or (D)", None),
    ("the answer is A and C", None),
    ("the answer is (X) none of the above", None),
    ("the answer is F) because B is wrong", None),
    ("The answer is close, but says that A car moves", None),
    ("The answer is a bit hard", None),
    ("B is fine, I think, and so is a car.", None),
    ("Five Hundred", None),
    ("the answer is NameError: name 'B' is not defined", None),
]

TEXTS: list[tuple[str, str | None]] = [
    ("The answer is Paris.", "Paris"),
    ("**FINAL ANSWER:** *Maktay mato apple*", "Maktay mato apple"),
    ("The answer is St. Louis. It is a city.", "St. Louis"),
    ("The final answer is: “So we had to let it die.”", "So we had to let it die"),
    ("FINAL ANSWER:\nstare", "stare"),
    (r"\boxed{\text{Paris}}", "Paris"),
    (r"\boxed{\frac{\sqrt{2}}{2}}", r"\frac{\sqrt{2}}{2}"),
    (r'{"answer": "Paris, \"city\" of light", "x": 1}', 'Paris, "city" of light'),
    ("The answer is not Paris.", None),
    ("The answer is None.", None),
    ("Answer: N/A", None),
    ("the answer is ValueError: bad input", None),
    ("#### Paris", None),
    ("It is Paris.", None),
]

ANY: list[tuple[str, str | None]] = [
    ("The answer is 42 clips in all.", "42"),
    ("The answer is 3 + 4 = 7", "7"),
    ("Answer: (B)", "B"),
    ("The answer is option B", "B"),
    ("The answer is Route 66.", "Route 66"),
    ("The answer is a car.", "a car"),
    (r"\boxed{8,000}", "8000"),
    ("42", "42"),
    ("(B)", "B"),
    ("B because", None),
    ("None", None),
]

FALLBACKS: list[tuple[str, str, str | None]] = [
    ("number", "The total is 72 clips, altogether.", "72"),
    ("number", "is $29.00.", "29"),
    ("number", "from 3 to 5 and then -3", "-3"),
    ("number", "- 72 clips", "72"),
    ("number", "2 cups and 1 1/2", "3/2"),
    ("number", "70,000 (see step 3)", "70000"),
    ("number", "version 1.2.3", None),
    ("number", "nothing", None),
    ("number", "The answer is not 5", "5"),
    ("number", "line 3", None),
    ("number", '  File "x.py", line 3', None),
    ("number", "ValueError: the answer is 5", None),
    (
        "number",
        '72\nTraceback (most recent call last):\n  File "a", line 3\n    x = 3 +\nSyntaxError: bad',
        None,
    ),
    ("number", "SyntaxError: invalid syntax (<string>, line 3)\nI get 7 now", "7"),
    ("number", "exitcode: 0 (execution succeeded)\nCode output: 42", "42"),
    ("number", "exitcode: 1 (execution failed)", None),
    ("number", "72 " + "x" * 30_000, None),
    ("choice", "So it has to be (B).", "B"),
    ("choice", "(A) is wrong.\nI take **B**.\nThank you!", "B"),
    ("choice", "either (A) or (B)", None),
    ("choice", "A car moves.", None),
    ("choice", "Error: (B)", None),
    ("text", "So it is Paris.", None),
]


@pytest.mark.parametrize(("text", "answer"), NUMBERS)
def test_a_number_is_read_from_a_form_of_commitment(text: str, answer: str | None) -> None:
    assert read_answer(text, kind="number") == answer


@pytest.mark.parametrize(("text", "answer"), CHOICES)
def test_a_choice_is_read_from_a_form_of_commitment(text: str, answer: str | None) -> None:
    assert read_answer(text, kind="choice") == answer


@pytest.mark.parametrize(("text", "answer"), TEXTS)
def test_a_text_is_read_from_an_answer_line_or_a_box(text: str, answer: str | None) -> None:
    assert read_answer(text, kind="text") == answer


@pytest.mark.parametrize(("text", "answer"), ANY)
def test_without_a_kind_whichever_it_is_is_read(text: str, answer: str | None) -> None:
    assert read_answer(text) == answer


@pytest.mark.parametrize(("kind", "text", "answer"), FALLBACKS)
def test_the_fallback_takes_the_last_value_after_any_error_message(
    kind: str, text: str, answer: str | None
) -> None:
    assert read_answer(text, kind=kind, fallback=True) == answer


def test_a_message_that_is_nothing_but_the_gold_text_commits_to_it() -> None:
    assert read_answer("The Hague!", kind="text", gold="the hague") == "The Hague"
    assert read_answer("The Hague, I think", kind="text", gold="the hague") is None
    assert read_answer("It is 7", kind="number", gold="It is 7") is None


def test_only_letters_among_the_options_are_choices() -> None:
    assert read_answer("The answer is H", kind="choice") is None
    assert read_answer("The answer is H", kind="choice", options="ABCDEFGH") == "H"
    assert read_answer("The answer is I think B", options="ABCDEFGHI") == "B"
    assert read_answer("The answer is I", options=["A", "I"]) == "I"


def test_an_answer_that_equals_one_options_text_counts_as_its_letter() -> None:
    options = {"A": "500", "B": "600", "C": "osmosis"}
    assert read_answer("the answer is 600.0", options=options) == "B"
    assert read_answer("the answer is Osmosis.", options=options) == "C"
    assert read_answer("the answer is not 600", options=options) is None
    assert read_answer("the answer is 700", options=options) is None


def test_the_users_pattern_is_one_more_form_and_the_last_form_wins() -> None:
    assert read_answer("RESULT> 5", kind="number", pattern=r"RESULT> (.*)") == "5"
    assert read_answer("RESULT> 5\nThe answer is 6", kind="number", pattern=r"RESULT> (.*)") == "6"
    assert read_answer("The answer is 6\nRESULT> 5", kind="number", pattern=r"RESULT> (.*)") == "5"
    assert read_answer("The answer is 6 (or 5)", kind="number", pattern=r"or (\d)") == "5"


def test_a_pattern_that_does_not_end_is_stopped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.answers.reading._SECONDS", 0.05)
    with pytest.raises(
        UsageError, match=r"answer pattern .* took more than 0.05 seconds on a text of 41 char"
    ):
        read_answer("a" * 40 + "!", pattern=r"((?:a|aa)+)$")


@pytest.mark.parametrize("pattern", ["RESULT", "(a)(b)", "("])
def test_a_pattern_needs_to_be_a_regular_expression_with_one_group(pattern: str) -> None:
    with pytest.raises(UsageError, match="answer pattern"):
        read_answer("5", pattern=pattern)


def test_an_unknown_kind_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="number, choice or text"):
        read_answer("5", kind="letter")


SAME = [
    ("145", "145.0", None),
    ("$9,500", r"\boxed{9{,}500}", None),
    ("10,000.00", "10000", "number"),
    ("$29.00", "29", None),
    ("1/2", "0.5", None),
    (r"\frac{1}{2}", "1/2", None),
    ("1 1/2", "1.5", None),
    ("25%", "25", None),
    ("35 cm", "35", None),
    ("1.5 million", "1,500,000", None),
    ("−3", "-3", None),
    ("0.1", "1/10", None),
    ("B", "(b)", None),
    ("B)", "B", "choice"),
    ("B) osmosis", "B", "choice"),
    ("The Hague.", "the hague", None),
    ("“So we had to let it die”", "So we had to let it die.", "text"),
    ("a  cat", "Cat!", "text"),
    ("Out of the blue", "out of blue", "text"),
    ("A", "a", "text"),
    ("ﬁne", "fine", "text"),
    (r"\text{Paris}", "paris", "text"),
    (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt2}", None),
    ("2^{10}", "1024", "number"),
    (r"\sqrt{16}", "4", "number"),
    ("x^2+2x+1", "(x+1)^2", "text"),
    (r"$\left(1, 2\right)$", "(1,2)", "text"),
]

DIFFERENT = [
    ("25", "5", None),
    ("5", "-5", None),
    ("33.14", "3.14", None),
    ("0.33", "1/3", None),
    ("0.3333333333", "1/3", "number"),
    ("3 million", "3 billion", None),
    ("50%", "0.5", None),
    ("B", "C", None),
    ("B", "osmosis", "choice"),
    ("Paris", "London", None),
    ("Paris is a city", "Paris", "text"),
    ("vitamin A", "vitamin", "text"),
    ("", "", None),
    ("None", "None", None),
    ("line 3", "3", None),
    (r"2\pi", "6.28", "number"),
    (r"2\sqrt{3}", r"3\sqrt{2}", "number"),
    ("9^{9^{9^9}}", "9", "number"),
    ("99999999^{99}", "x^{99999999}", "text"),
    (r"\sum_{k=1}^{99999999} k", "1", "text"),
    ("(a+b+c+d)^{99}", "(a+b+c+d)^{98}", "text"),
    (r"((\pi+3)^{99})^{-9}", "7^2", "text"),
    ("(" * 70 + "x^2" + ")" * 70, "x^2+1", "text"),
    (r"\sin(\sin(y2)^9)", r"\log(2ax)", "text"),
    (r"\frac{1}{0}", "1", "number"),
    (r"\frac{", "1", "number"),
]


@pytest.mark.parametrize(("a", "b", "kind"), SAME)
def test_equal_answers_are_the_same_both_ways_round(a: str, b: str, kind: str | None) -> None:
    assert same_answer(a, b, kind=kind)
    assert same_answer(b, a, kind=kind)


@pytest.mark.parametrize(("a", "b", "kind"), DIFFERENT)
def test_unequal_answers_differ_both_ways_round(a: str, b: str, kind: str | None) -> None:
    assert not same_answer(a, b, kind=kind)
    assert not same_answer(b, a, kind=kind)


def test_no_answer_equals_nothing() -> None:
    assert not same_answer(None, "5")
    assert not same_answer(None, None)


def test_expressions_are_compared_outside_the_main_thread_too() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(same_answer, r"\sqrt{9}", "3").result()


def test_plain_answers_never_load_the_expression_reader() -> None:
    lines = [
        "import sys",
        "from counterpoint.answers import read_answer, same_answer",
        "assert same_answer('145', '145.0') and same_answer('B', '(B)') and not same_answer('Paris', 'Rome')",
        "assert same_answer(read_answer(chr(92) + 'boxed{' + chr(92) + 'frac{1}{2}}'), '0.5')",
        "assert not {'sympy', 'math_verify', 'numpy'} & set(sys.modules), 'loaded'",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


OPTIONS_OF = [
    ("Which? Choices: A) 3 B) 4 C) 5", {"A": "3", "B": "4", "C": "5"}),
    ("Which?\nOption A: red\nOption B: blue", {"A": "red", "B": "blue"}),
    ("Which?\n(A) red\n(B) blue\n\nThink first.", {"A": "red", "B": "blue"}),
    ("Which?\nA. red\nB. blue", {"A": "red", "B": "blue"}),
    ("Which? a) red b) blue", {"A": "red", "B": "blue"}),
    ("Which? ['A)32400', 'B)6000']", {"A": "32400", "B": "6000"}),
    ("A) was an example.\nNow: A) x B) y", {"A": "x", "B": "y"}),
    ("How many eggs (A) are there?", {}),
    ("", {}),
]


@pytest.mark.parametrize(("task", "options"), OPTIONS_OF)
def test_the_options_that_a_task_lists_are_found(task: str, options: dict[str, str]) -> None:
    assert read_options(task) == options


CHOOSE = "Pick one: A) 3 B) 4 C) 5"
KINDS = [
    ("B", CHOOSE, "choice"),
    ("(B)", CHOOSE, "choice"),
    ("E", CHOOSE, "text"),
    ("B", "Which vitamin?", "text"),
    ("72", CHOOSE, "number"),
    ("72 clips", "", "number"),
    ("$1,000.50", "", "number"),
    ("-10", "", "number"),
    ("45.0%", "", "number"),
    (r"\frac{1}{2}", "", "number"),
    ("56000", "", "number"),
    ("3 or 4", "", "text"),
    ("35 miles per hour", "", "text"),
    ("2nd", "", "text"),
    (r"2\sqrt{3}", "", "text"),
    ("So we had to let it die.", "", "text"),
    ('{"sender": "USPS", "price (usd)": "41.75"}', "", "text"),
    ("", "", "text"),
]


@pytest.mark.parametrize(("gold", "task", "kind"), KINDS)
def test_the_kind_of_answer_is_inferred_from_the_gold(gold: str, task: str, kind: str) -> None:
    assert infer_kind(gold, task) == kind


@given(st.fractions(max_denominator=1000))
def test_a_fraction_survives_being_written_and_read(value: Fraction) -> None:
    read = read_answer(f"So the answer is {value}.", kind="number")
    assert read is not None
    number = read_number(read)
    assert number is not None
    assert number.value == value


@given(st.integers(), st.integers(0, 4))
def test_separators_and_trailing_zeros_change_no_number(value: int, zeros: int) -> None:
    written = f"{value:,}" + ("." + "0" * zeros if zeros else "")
    assert read_answer(f"**Answer**: ${written}", kind="number") == str(value)


PIECES = [
    "answer",
    " is ",
    ": ",
    "= ",
    "\\boxed{",
    "\\frac{",
    "}",
    "{",
    '"answer": "',
    '"',
    "#### ",
    "$",
    "(",
    "B",
    "A",
    "I",
]
PIECES += [
    "3",
    "1,000",
    ".5",
    "-",
    "/",
    "e9",
    "^",
    "½",
    "²",
    "\n",
    "\\",
    "*",
    "not ",
    "line ",
    "Error: ",
    " or ",
    " million",
]


@given(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(st.characters(), max_size=5)), max_size=12).map(
        "".join
    ),
    st.sampled_from(["number", "choice", "text", None]),
)
def test_no_text_raises_and_what_is_read_is_an_answer_of_its_kind(text: str, kind: str | None) -> None:
    answer = read_answer(text, kind=kind, fallback=True, gold="x")
    read_options(text)
    assert infer_kind(text, text) in ("number", "choice", "text")
    assert answer is None or answer
    if kind == "choice":
        assert answer is None or answer in "ABCDE"
    if answer is not None and kind == "number" and "\\" not in answer and not set("^√π") & set(answer):
        assert read_number(answer) is not None


HOSTILE = [
    "answer is ",
    "the answer is not 5 ",
    "\\boxed{",
    "\\boxed{{",
    "1",
    "1,",
    "1,111",
    "1 ",
    "answer is\n",
    "####\n",
]
HOSTILE += [
    '"answer": "',
    '\\"answer\\": \\"',
    "\n",
    " ",
    "*",
    "(",
    "'",
    "step 1 ",
    "error ",
    'File "',
    "\\frac{",
    'answer"""""',
]
HOSTILE += [
    "A) ",
    "answer is A, ",
    ")",
    ")}]",
    "½",
    "answer is " + "1 " * 180 + "\n",
    "answer is " + "x" * 380 + "\n",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_is_read_in_linear_time(unit: str, takes_at_most: Any) -> None:
    text = unit * (250_000 // len(unit))

    def read() -> None:
        for kind in ("number", "choice", "text", None):
            read_answer(text, kind=kind, fallback=True, gold="x")
            same_answer(text, text[:-1], kind=kind)
        infer_kind("B", text)

    assert takes_at_most(3, read)


def test_a_megabyte_is_read_within_a_second(takes_at_most: Any) -> None:
    text = "So the answer is not 5 or \\boxed{6 but " * 25_000
    assert read_answer(text, kind="number") is None
    assert takes_at_most(1, lambda: read_answer(text, kind="number"))
