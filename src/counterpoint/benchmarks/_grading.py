"""How a question is put, its answer read and graded: the same for every benchmark here."""

from __future__ import annotations

from collections.abc import Mapping

from counterpoint import answers
from counterpoint.contracts import Example
from counterpoint.errors import UsageError

__all__ = ["grade", "prompt", "read_answer", "whole_number", "with_options"]

CONTRACTS = {
    "number": 'End with a line of its own, "The answer is <number>": one plain number, without its unit.',
    "choice": 'End with a line of its own, "The answer is <letter>": the letter of one option.',
    "text": 'End with a line of its own, "The answer is <answer>": only the answer, as short as it can be.',
}
"""Kind of answer to what every agent is asked to end with. No reader takes one of these for an answer."""


def prompt(example: Example) -> str:
    """The task, then the form of the answer."""
    return f"{example.task}\n\n{CONTRACTS[example.kind]}"


def read_answer(text: str, example: Example) -> str | None:
    """The answer that ``text`` gives; where no form commits to one, its last number or one shown letter."""
    return answers.read_answer(text, kind=example.kind, options=example.options or None, fallback=True)


def grade(answer: str | None, example: Example) -> bool:
    """Whether the answer is the gold one: numbers exactly, as fractions; None is wrong."""
    return answers.same_answer(answer, example.gold, kind=example.kind)


def with_options(question: str, options: Mapping[str, str]) -> str:
    """A question and its options as an agent is shown them, one a line."""
    return "\n".join([question.strip(), *(f"{letter}) {text}" for letter, text in options.items())])


def whole_number(value: object, where: str) -> str:
    """A gold answer in plain digits: ``39`` for 39.0, for "39.0" and for "39 apples"."""
    number = answers.read_number(str(value))
    if number is None:
        raise UsageError(f"{where}: the answer {str(value)[:60]!r} is no number")
    return number.text
