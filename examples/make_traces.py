"""Write the two small trace files beside this script: our own texts, no model was asked.

Twelve grade-school questions, four roles, two rounds, a decision at the end. Both teams answer eleven of
twelve; they differ in how they work:

* ``panel``: each role adds something of its own, and reads only those whose text it needs;
* ``echo``: everybody reads everybody, most repeat what stands there already, and two are often wrong.

Run: python examples/make_traces.py
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from counterpoint import Step, Trace, Transfer, Usage, write

HERE = Path(__file__).parent / "traces"
MODEL = "gpt-4o-mini"


class Question(NamedTuple):
    """One question with what each role would say about it."""

    name: str
    task: str
    plan: str
    work: str
    code: str
    check: str
    gold: str
    slip: str
    """A wrong answer that comes easily."""


QUESTIONS = [
    Question(
        "apples",
        "Mia picks 6 baskets of 8 apples and gives 13 apples away. How many apples does she keep?",
        "Two stages: how many apples fill the baskets, then what leaves her hands.",
        "6 * 8 = 48 apples picked, and 48 - 13 = 35 remain.",
        "picked = 6 * 8; kept = picked - 13",
        "Adding back: 35 kept and 13 given make 48, which is six eights.",
        "35",
        "61",
    ),
    Question(
        "bus",
        "A bus has 42 seats. 17 people board, then 9 more, then 5 leave. How many seats are free?",
        "Track who is on board after every stop; free seats are what the passengers leave over.",
        "17 + 9 - 5 = 21 people sit, so 42 - 21 = 21 seats stay empty.",
        "aboard = 17 + 9 - 5; free = 42 - aboard",
        "Half of 42 is 21, and 21 riders in 21 seats leave exactly the other half.",
        "21",
        "31",
    ),
    Question(
        "paint",
        "One tin paints 12 square meters. How many tins are needed for a wall of 5 by 9 meters?",
        "Find the area first; a part of a tin still means buying the whole tin.",
        "5 * 9 = 45 square meters; 45 / 12 = 3.75, so 4 tins.",
        "import math; tins = math.ceil(5 * 9 / 12)",
        "Three tins cover 36, too little; a fourth reaches 48, enough.",
        "4",
        "3.75",
    ),
    Question(
        "train",
        "A train leaves at 14:35 and travels 95 minutes. How many minutes after 15:00 does it arrive?",
        "Count from the full hour: 25 minutes pass before three o'clock.",
        "95 - 25 = 70 minutes after 15:00.",
        "arrival = 14 * 60 + 35 + 95; after = arrival - 15 * 60",
        "70 minutes past three is 16:10, and 14:35 plus an hour and 35 minutes is 16:10 as well.",
        "70",
        "60",
    ),
    Question(
        "ribbon",
        "A ribbon of 240 cm is cut into pieces of 15 cm. 4 pieces are lost. How many pieces are left?",
        "Divide the length by one piece, and afterwards take the lost ones off.",
        "240 / 15 = 16 pieces, 16 - 4 = 12.",
        "pieces = 240 // 15 - 4",
        "Twelve pieces measure 180 cm and the lost four 60 cm: together the full 240.",
        "12",
        "16",
    ),
    Question(
        "savings",
        "Noor saves 7 euros a week for 9 weeks and spends 28 euros. How many euros are left?",
        "Savings grow evenly; the purchase comes once, at the end.",
        "7 * 9 = 63 and 63 - 28 = 35 euros.",
        "left = 7 * 9 - 28",
        "28 is four weeks of saving, so five weeks remain: 5 times 7 is 35.",
        "35",
        "44",
    ),
    Question(
        "cookies",
        "A recipe for 24 cookies takes 3 eggs. How many eggs do 72 cookies take?",
        "Eggs scale with cookies: how many times the recipe is baked decides.",
        "72 / 24 = 3 batches, 3 * 3 = 9 eggs.",
        "eggs = 72 // 24 * 3",
        "One egg serves eight cookies, and nine eights are 72.",
        "9",
        "6",
    ),
    Question(
        "books",
        "A shelf holds 18 books. How many shelves do 150 books need?",
        "Full shelves first; the rest needs one more board.",
        "150 / 18 = 8 remainder 6, hence 9 shelves.",
        "shelves = -(-150 // 18)",
        "Eight boards take 144 books, six still lie on the floor: one board more.",
        "9",
        "8",
    ),
    Question(
        "garden",
        "A garden is 14 m long and 6 m wide. How many meters of fence go around it?",
        "A fence follows the border, so the area does not matter here.",
        "2 * (14 + 6) = 40 meters.",
        "fence = 2 * (14 + 6)",
        "Walking it: 14, 6, 14, 6 sum to 40.",
        "40",
        "84",
    ),
    Question(
        "marbles",
        "Tom has 45 marbles, Lea a third of that. How many do both have together?",
        "Lea's share depends on Tom's; the total wants both.",
        "45 / 3 = 15, together 45 + 15 = 60.",
        "total = 45 + 45 // 3",
        "Sixty is four thirds of 45, as it should be.",
        "60",
        "48",
    ),
    Question(
        "water",
        "A tank of 90 liters loses 4 liters an hour. How many liters are in it after 12 hours?",
        "The loss is even, so it multiplies with the hours.",
        "4 * 12 = 48 liters run out, 90 - 48 = 42 stay.",
        "rest = 90 - 4 * 12",
        "After half a day a bit less than half the tank is left: 42 fits.",
        "42",
        "38",
    ),
    Question(
        "tickets",
        "Adults pay 9 euros, children 5. 2 adults and 3 children pay with 50 euros. What change?",
        "Price both groups apart, add, and compare with the note.",
        "2 * 9 + 3 * 5 = 33, change 50 - 33 = 17 euros.",
        "change = 50 - (2 * 9 + 3 * 5)",
        "33 and 17 make the full 50 again.",
        "17",
        "36",
    ),
]
MISSED = {"panel": "paint", "echo": "train"}
"""The one question that each team gets wrong."""
RASH_PLANS = ("bus", "savings", "garden", "water")
"""Questions on which the panel's plan starts from a wrong estimate, mended within the round."""


def _step(name: str, agent: str, turn: int, text: str, heard: list[str], clock: float) -> Step:
    seen = 180 + 60 * len(heard)
    return Step(
        id=name,
        agent=agent,
        role=agent,
        text=text,
        kind="decision" if agent == "editor" else "agent",
        round=turn,
        heard=tuple(Transfer(source) for source in heard),
        started_at=clock,
        ended_at=clock + 2.0,
        usage=Usage(tokens_in=seen, tokens_out=8 + len(text) // 4, model=MODEL),
    )


def _panel(question: Question) -> list[Step]:
    last = question.slip if question.name == MISSED["panel"] else question.gold
    line = f"The answer is {question.gold}."
    first = question.slip if question.name in RASH_PLANS else question.gold
    texts = [
        ("a0", "analyst", 0, f"{question.plan} Roughly, the answer is {first}.", []),
        ("c0", "coder", 0, f"As a program: {question.code}. The answer is {first}.", ["a0"]),
        ("s0", "solver", 0, f"Step by step: {question.work} {line}", ["a0"]),
        ("k0", "checker", 0, f"{question.check} {line}", ["s0"]),
        ("a1", "analyst", 1, f"The plan held; nothing of the question is left over. {line}", ["k0"]),
        ("c1", "coder", 1, f"The program prints what the sums gave. {line}", ["s0"]),
        (
            "s1",
            "solver",
            1,
            f"Rounding asked about once more, then settled. The answer is {last}.",
            ["k0", "a1"],
        ),
        ("k1", "checker", 1, f"Units and size are plausible. {line}", ["s1"]),
    ]
    return _play(texts, last, ["s1", "k1"])


def _echo(question: Question) -> list[Step]:
    last = question.slip if question.name == MISSED["echo"] else question.gold
    right, wrong = f"The answer is {question.gold}.", f"The answer is {question.slip}."
    said = f"Step by step: {question.work}"
    rash = f"Quickly: it must be {question.slip}."
    first = [
        ("a0", "analyst", 0, f"{rash} {wrong}", []),
        ("c0", "coder", 0, f"{rash} {wrong}", ["a0"]),
        ("s0", "solver", 0, f"{said} {right}", ["a0", "c0"]),
        ("k0", "checker", 0, f"{rash} {wrong}", ["a0", "c0", "s0"]),
    ]
    before = [name for name, *_ in first]
    second = [
        ("a1", "analyst", 1, f"{rash} {wrong}", before[1:]),
        ("c1", "coder", 1, f"{rash} {wrong}", [*before[:1], *before[2:], "a1"]),
        ("s1", "solver", 1, f"{said} The answer is {last}.", [*before[:2], *before[3:], "a1", "c1"]),
        ("k1", "checker", 1, f"{said} The answer is {last}.", [*before[:3], "a1", "c1", "s1"]),
    ]
    return _play(first + second, last, ["a1", "c1", "s1", "k1"])


def _play(texts: list[tuple[str, str, int, str, list[str]]], answer: str, read: list[str]) -> list[Step]:
    steps = [
        _step(name, agent, turn, text, heard, 1_700_000_000.0 + 3.0 * number)
        for number, (name, agent, turn, text, heard) in enumerate(texts)
    ]
    clock = 1_700_000_000.0 + 3.0 * len(steps)
    return [*steps, _step("final", "editor", 2, f"The answer is {answer}.", read, clock)]


def main() -> None:
    """Write panel.jsonl and echo.jsonl."""
    for system, play in (("panel", _panel), ("echo", _echo)):
        traces = [
            Trace(
                id=f"{system}/{question.name}",
                steps=tuple(play(question)),
                task=question.task,
                gold=question.gold,
                system=system,
                labels={"task_id": question.name},
            )
            for question in QUESTIONS
        ]
        write(traces, str(HERE / f"{system}.jsonl"))


if __name__ == "__main__":
    main()
