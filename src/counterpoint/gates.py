"""Gate expressions: ``upr>0.4, max(ids)<0.1, duplicated_tokens>25%``; a mistake is shown with its place.

Grammar
-------
::

    gates      = gate {"," gate}
    gate       = subject operator number
    subject    = metric | fold "(" metric ")"
    fold       = "mean" | "min" | "max" | "ci_low" | "ci_high"
    operator   = "<" | "<=" | ">" | ">="
    number     = decimal ["%"]

A metric is text as everywhere: ``upr``, ``upr(threshold=0.6)``. Without a fold the mean over the defined
traces is tested. ``25%`` is .25.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from counterpoint.errors import UsageError

__all__ = ["FOLDS", "Gate", "parse_gates"]

FOLDS = ("mean", "min", "max", "ci_low", "ci_high")
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
OPPOSITE = {"<=": ">", ">=": "<", "<": ">=", ">": "<="}

_SUBJECT = re.compile(r"\s*([A-Za-z_]\w*)\s*")
_OPERATOR = re.compile(r"\s*(<=|>=|<|>)\s*")
_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")


class Gate(NamedTuple):
    """One condition under which a build fails."""

    text: str
    """As the user wrote it."""
    metric: str
    fold: str
    comparison: Literal["<", "<=", ">", ">="]
    """The build fails when ``observed comparison threshold`` holds."""
    threshold: float

    def fails(self, observed: float) -> bool:
        """Whether ``observed`` fails the gate."""
        return OPERATORS[self.comparison](observed, self.threshold)


def parse_gates(text: str, *, require: bool = False) -> list[Gate]:
    """The gates in ``text``; with ``require`` it states what must hold, else what fails.

    Raises UsageError with the expression and a caret under the place where it stops making sense.
    """
    if not text.strip():
        raise UsageError("no condition is given: write one like 'upr>0.4'")
    gates, position = [], 0
    while True:
        start = position
        fold, metric, position = _subject(text, position)
        found = _OPERATOR.match(text, position)
        if not found:
            raise _mistake(text, position, "expected one of < <= > >=")
        comparison, position = found[1], found.end()
        number = _NUMBER.match(text, position)
        if not number:
            raise _mistake(text, position, "expected a number")
        threshold = float(number[1]) / (100 if number[2] else 1)
        if math.isinf(threshold):
            raise _mistake(text, position, "this number is too large")
        position = number.end()
        if require:
            comparison = OPPOSITE[comparison]
        gates.append(Gate(text[start:position].strip(), metric, fold, comparison, threshold))  # type: ignore[arg-type]
        if position == len(text):
            return gates
        if text[position] != ",":
            raise _mistake(text, position, "expected a comma between conditions")
        position += 1


def _subject(text: str, position: int) -> tuple[str, str, int]:
    """Fold, metric text and where the subject ends."""
    name = _SUBJECT.match(text, position)
    if not name:
        raise _mistake(text, position, "expected a metric")
    if text[name.end() : name.end() + 1] != "(":
        return "mean", name[1], name.end()
    close = _closing(text, name.end())
    inside = text[name.end() + 1 : close]
    if name[1] not in FOLDS:
        return "mean", f"{name[1]}({inside.strip()})", close + 1
    fold, metric, end = _subject(text, name.end() + 1)
    if fold != "mean" or text[name.end() + 1 :].lstrip().startswith("mean(") or text[end:close].strip():
        raise _mistake(text, name.end() + 1, f"{name[1]}(...) takes one metric")
    return name[1], metric, close + 1


def _closing(text: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place
    raise _mistake(text, opening, "this bracket is never closed")


def _mistake(text: str, position: int, expected: str) -> UsageError:
    while position < len(text) and text[position] == " ":
        position += 1
    shown = text.replace("\n", " ").replace("\t", " ")
    return UsageError(f"the condition stops making sense: {expected}\n  {shown}\n  {' ' * position}^")
