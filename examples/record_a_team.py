"""A team without a framework, recorded and scored: two solvers at once, then a judge who hears both.

    python examples/record_a_team.py

The functions stand for calls of your models. What is recorded goes to recording.jsonl in the current folder;
``counterpoint report recording.jsonl -o report.html`` makes a page of it.
"""

from concurrent.futures import ThreadPoolExecutor

import counterpoint as cp

TASK = "A ferry takes 12 cars a trip. How many trips do 30 cars need?"


def solver(way: str) -> str:
    return f"By {way}: 30 / 12 is 2.5, and a half trip is a trip. The answer is 3."


def judge(*said: str) -> str:
    return f"{len(said)} ways lead to the same number. The answer is 3."


with (
    cp.record("ferry", task=TASK, gold="3", system="two solvers and a judge", to="recording.jsonl") as run,
    ThreadPoolExecutor() as pool,
):

    def solve(way: str) -> cp.Step:
        with run.turn(f"solver by {way}") as turn:
            turn.text = solver(way)
            turn.tokens_out = len(turn.text.split())
        return turn.step

    solved = list(pool.map(solve, ["division", "counting"]))
    last = run.step("judge", judge(*(step.text for step in solved)), heard=solved)
    run.answer = "3"

for row in cp.evaluate(
    cp.read("recording.jsonl"), metrics=["accuracy", "agents", "depth", "tokens_out"]
).rows:
    print(row.trace, row.metric, row.value if row.value is not None else row.reason)
