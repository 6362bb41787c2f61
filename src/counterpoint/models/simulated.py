"""A simulated chat model: right so often, and moved by what it is shown as much, as its parameters say.

    model = Simulated(examples, accuracy=0.7, copying=0.4, stubbornness=0.3, verbosity=40, seed=1)

The testing ground of topologies and optimizers: how a team does depends on who hears whom, at no cost.

Conventions
-----------
* It knows the questions: the example whose task stands in the messages is the one that is asked. Others'
  answers are read from the user messages, as any reader of answers would: one under each heading ``[name]``.
* An agent is its system prompt: one prompt, one belief a question. A system prompt that names an adversary
  makes it wrong always, and unmoved; one that asks for a ``python`` program makes it write one.
* Same seed and request, same reply. A reply ends with the answer line ``The answer is X``.

What counts
-----------
Of an answer, in this order:

1. Alone, it says what it believes: the gold answer with probability ``accuracy``, else a wrong one.
2. Where it hears answers it keeps its belief with probability ``stubbornness``.
3. Else, with probability ``copying``, it takes the most frequent answer that it heard, and repeats the words
   that came with it; else it thinks again, with the same accuracy.

Wrong answers to a question are few, so that two agents may be wrong alike. Tokens are words and marks, as of
the scripted model.

Source: ours. Nothing that it scores says anything about a real model.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from counterpoint.answers import read_answer, read_number
from counterpoint.contracts import Example, Reply
from counterpoint.errors import ModelError, UsageError
from counterpoint.models._script import estimate_tokens, text_of

__all__ = ["Simulated"]

_ADVERSARY = re.compile(r"\badversar", re.IGNORECASE)
_PROGRAM = re.compile(r"```python")
_SPEAKER = re.compile(r"^\[[^\]\n]+\]$", re.MULTILINE)
_PHRASES = (
    "first we take what is given",
    "the change is applied one step at a time",
    "each quantity keeps its unit",
    "both sides are compared",
    "the total follows from the parts",
    "going back through the steps in the opposite order",
    "so that nothing is counted twice",
    "what is left is the amount we look for",
    "the second statement only distracts",
    "which agrees with a rough estimate",
    "here the rate is the same throughout",
    "now insert the numbers of the task",
)
_WRONG_WAYS = 4
"""How many wrong answers a number question has."""


@dataclass(frozen=True)
class _Heard:
    """An answer that somebody else gave, and the words before it."""

    answer: str
    words: str


class Simulated:
    """A chat model that answers `examples` without a model; see the module for its rules."""

    def __init__(
        self,
        examples: Iterable[Example],
        *,
        accuracy: float = 0.7,
        copying: float = 0.5,
        stubbornness: float = 0.3,
        verbosity: int = 40,
        seed: int = 0,
    ) -> None:
        shares = {"accuracy": accuracy, "copying": copying, "stubbornness": stubbornness}
        for name, share in shares.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise UsageError(f"{name} of a simulated model is a share from 0 to 1, not {share!r}")
        if isinstance(verbosity, bool) or not isinstance(verbosity, int) or verbosity < 0:
            raise UsageError(f"verbosity of a simulated model is a number of words, not {verbosity!r}")
        # The longest task first: one that contains another is the one that was asked.
        self.examples = sorted(examples, key=lambda example: -len(example.task))
        self.accuracy, self.copying, self.stubbornness = accuracy, copying, stubbornness
        self.verbosity, self.seed = verbosity, seed
        self.settings: dict[str, Any] = {"model": "simulated", **shares, "verbosity": verbosity, "seed": seed}

    def __call__(self, messages: Sequence[Mapping[str, Any]], /) -> Reply:
        """The reply; a ModelError where the messages hold the task of no example."""
        system = _said(messages, "system")
        shown = _said(messages, "user")
        example = next((one for one in self.examples if one.task in shown), None)
        if example is None:
            raise ModelError("a simulated model answers its own examples only, and none of them was asked")
        texts = [text_of(message.get("content")) for message in messages]
        draw = self._random("request", *texts)
        heard = _heard(shown, example)
        belief = self._answer(example, self._random("belief", example.id, system), system)
        answer, words = self._settled(example, heard, belief, draw, system)
        text = self._worded(answer, words, draw, writes=bool(_PROGRAM.search(system)))
        return Reply(text, estimate_tokens(*texts), estimate_tokens(text), "simulated", "stop")

    def _random(self, *parts: str) -> random.Random:
        digest = hashlib.sha256("\0".join([str(self.seed), *parts]).encode("utf-8", "replace"))
        return random.Random(digest.digest())

    def _answer(self, example: Example, draw: random.Random, system: str) -> str:
        """The gold answer or a wrong one."""
        right = draw.random() < self.accuracy and not _ADVERSARY.search(system)
        return example.gold if right else draw.choice(self._wrong(example))

    def _wrong(self, example: Example) -> list[str]:
        """The wrong answers to a question: its other options, or a few numbers near the right one."""
        if example.kind == "choice":
            others = [letter for letter in example.options if letter != example.gold]
            return others or ["A" if example.gold != "A" else "B"]
        number = read_number(example.gold)
        if number is None:
            return [f"other than {example.gold}"]
        draw = self._random("wrong", example.id)
        steps = draw.sample([-10, -5, -2, -1, 1, 2, 5, 10], _WRONG_WAYS)
        return [_plain(number.value + step) for step in steps]

    def _settled(
        self, example: Example, heard: list[_Heard], belief: str, draw: random.Random, system: str
    ) -> tuple[str, str]:
        """What it says in the end, and the words of others that it repeats."""
        if not heard or _ADVERSARY.search(system) or draw.random() < self.stubbornness:
            return belief, ""
        if draw.random() < self.copying:
            counts = Counter(one.answer for one in heard)
            chosen = max(counts, key=lambda answer: counts[answer])
            return chosen, next(one.words for one in heard if one.answer == chosen)
        return self._answer(example, draw, system), ""

    def _worded(self, answer: str, words: str, draw: random.Random, *, writes: bool) -> str:
        told = words.split()[: self.verbosity]
        while len(told) < self.verbosity:
            told += draw.choice(_PHRASES).split()
        parts = [" ".join(told[: self.verbosity])]
        if writes:
            parts.append(f"```python\nanswer = {answer!r}\n```")
        return "\n\n".join([*filter(None, parts), f"The answer is {answer}"])


def _said(messages: Sequence[Mapping[str, Any]], role: str) -> str:
    return "\n".join(text_of(message.get("content")) for message in messages if message.get("role") == role)


def _heard(shown: str, example: Example) -> list[_Heard]:
    """The last answer under each speaker's heading ``[name]``; where there is none, that of every line."""
    blocks = _SPEAKER.split(shown.replace(example.task, ""))
    if len(blocks) == 1:
        blocks = blocks[0].splitlines()
    found = []
    for block in blocks:
        lines = [line for line in block.splitlines() if "answer" in line.casefold()]
        answers = [
            read_answer(line, kind=example.kind, options=example.options or None)
            for line in lines
            if "<" not in line  # the form of an answer is none
        ]
        said = [answer for answer in answers if answer is not None]
        if said:
            found.append(_Heard(said[-1], max(block.splitlines(), key=len)))
    return found


def _plain(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else str(float(value))
