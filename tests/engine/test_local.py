"""A run of four small questions: nothing is asked twice, nothing is lost, failures are named."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example, Reply
from counterpoint.engine.estimate import REPLY_TOKENS, estimate
from counterpoint.engine.folder import RunFolder
from counterpoint.engine.jobs import Plan
from counterpoint.engine.local import Report, dollars, run
from counterpoint.engine.patience import HOPELESS
from counterpoint.errors import BudgetExceeded, ModelError, UsageError
from counterpoint.models.cached import Cached
from counterpoint.models.limits import Limits
from counterpoint.models.scripted import Scripted
from counterpoint.runtime.systems import system
from counterpoint.runtime.topologies import topology
from counterpoint.trace import Trace, Usage, encode

FOUR = [Example(f"q{number}", f"What is {number} + 7?", str(number + 7)) for number in range(4)]
WORDS = Reply("I think so. The answer is 7.", 10, 5, "m")


def plan(name: str = "debate", *, examples: Any = FOUR, seeds: int = 1, **settings: Any) -> Plan:
    return Plan(gsm8k, "gsm8k", examples, system(name), {"model": "m", **settings}, seeds)


def sit(
    chosen: Plan, path: Path, reply: Any = WORDS, *, resume: bool = False, models: Any = None, **how: Any
) -> tuple[Report, Scripted]:
    """One sitting, and the model that it asked."""
    model = reply if isinstance(reply, Scripted) else Scripted(reply)
    folder = RunFolder(path, chosen.config(), resume=resume)
    try:
        report = run(chosen, folder, models or (lambda seed, wait: model), **{"threads": 4, **how})
    finally:
        folder.close()
    return report, model


def plain(trace: Trace) -> Any:
    """A trace without its times."""
    record = json.loads(encode(trace))
    for step in record["steps"]:
        del step["started_at"], step["ended_at"]
    return record


DOWN = ModelError("the server is down")


def failing_after(calls: int, error: Exception = DOWN) -> Callable[[Any], Reply]:
    """A model that gives so many replies and then fails for ever."""
    left = iter(range(calls))
    return lambda _: WORDS if next(left, None) is not None else _raise(error)


def _raise(error: Exception) -> Any:
    raise error


def test_every_question_has_a_trace_in_the_order_of_the_plan(tmp_path):
    report, model = sit(plan(), tmp_path)
    assert [trace.id for trace in report.traces] == ["q0", "q1", "q2", "q3"]
    assert len(model.requests) == 4 * 6 == report.progress.calls
    assert (report.progress.tokens_in, report.progress.tokens_out) == (240, 120)
    assert report.traces[0].correct
    assert (report.failures, report.stopped) == ((), "")
    lines = (tmp_path / "traces.jsonl").read_bytes().splitlines()
    assert lines == [encode(trace) for trace in report.traces]


def test_seeds_play_every_question_again_and_reach_the_model(tmp_path):
    asked = set()

    def models(seed: int, wait: Any) -> Scripted:
        asked.add(seed)
        return Scripted(WORDS)

    report, _ = sit(plan("single", seeds=3), tmp_path, models=models)
    assert len(report.traces) == 12
    assert [trace.id for trace in report.traces[:3]] == ["q0.s0", "q0.s1", "q0.s2"]
    assert [trace.labels["seed"] for trace in report.traces[:3]] == [0, 1, 2]
    assert {trace.labels["task_id"] for trace in report.traces[:3]} == {"q0"}
    assert asked == {0, 1, 2}


def test_samples_of_one_prompt_are_asked_under_different_seeds(tmp_path):
    asked = []

    def models(seed: int, wait: Any) -> Scripted:
        asked.append(seed)
        return Scripted(f"The answer is {seed}.")

    report, _ = sit(plan("cot-sc(agents=3)", examples=FOUR[:1]), tmp_path, models=models)
    assert sorted(asked) == [0, 1000, 2000]
    assert [step.answer for step in report.traces[0].steps[:3]] == ["0", "1000", "2000"]


def test_a_cache_keeps_samples_of_one_prompt_apart(tmp_path):
    class Seeded(Scripted):
        def __init__(self, seed: int) -> None:
            super().__init__(f"The answer is {seed}.")
            self.settings = {"model": "m", "temperature": 0, "seed": seed}

    asked: dict[int, Seeded] = {}

    def models(seed: int, wait: Any) -> Cached:
        asked[seed] = Seeded(seed)
        caches.append(Cached(asked[seed], tmp_path / "replies.sqlite"))
        return caches[-1]

    caches: list[Cached] = []
    chosen = plan("cot-sc(agents=3)", examples=FOUR[:1])
    for name, calls in (("first", 1), ("again", 0)):
        report, _ = sit(chosen, tmp_path / name, models=models)
        assert [step.answer for step in report.traces[0].steps[:3]] == ["0", "1000", "2000"]
        assert [len(model.requests) for model in asked.values()] == [calls] * 3
    for cache in caches:
        cache.close()


def test_the_same_plan_gives_the_same_traces_twice(tmp_path):
    def reply(messages: Any) -> str:
        return f"{sum(map(ord, str(messages))) % 97} words. The answer is 7."

    one, _ = sit(plan("vanilla"), tmp_path / "a", reply)
    other, _ = sit(plan("vanilla"), tmp_path / "b", reply, threads=1)
    assert [plain(trace) for trace in one.traces] == [plain(trace) for trace in other.traces]


def test_going_on_with_a_whole_run_asks_for_nothing(tmp_path):
    first, _ = sit(plan(), tmp_path)
    again, model = sit(plan(), tmp_path, resume=True)
    assert model.requests == []
    assert again.traces == first.traces
    assert (again.progress.calls, again.progress.asked_now) == (24, 0)


@pytest.mark.parametrize("paid", [1, 7, 23])
def test_a_run_that_broke_off_goes_on_without_asking_twice(tmp_path, paid):
    broken = Scripted(failing_after(paid, ValueError("pulled out")))
    first, _ = sit(plan(), tmp_path, broken)
    assert len(first.failures) > 0
    again, model = sit(plan(), tmp_path, resume=True)
    assert paid + len(model.requests) == 24
    assert [trace.id for trace in again.traces] == ["q0", "q1", "q2", "q3"]
    assert (
        sum(step.usage.tokens_in or 0 for trace in again.traces for step in trace.steps if step.usage) == 240
    )


def test_what_the_traces_lost_is_in_the_log(tmp_path):
    first, _ = sit(plan(), tmp_path)
    (tmp_path / "traces.jsonl").write_text("")
    again, model = sit(plan(), tmp_path, resume=True)
    assert model.requests == []
    assert again.traces == first.traces


def test_failed_calls_are_named_and_asked_again_when_the_run_goes_on(tmp_path):
    def reply(messages: Any) -> Any:
        return _raise(ModelError("HTTP 500: down")) if "2 + 7" in str(messages) else WORDS

    report, _ = sit(plan("single"), tmp_path, reply)
    assert [(one.trace, one.agent, one.error) for one in report.failures] == [
        ("q2", "direct", "HTTP 500: down")
    ]
    assert len(report.traces) == 4
    assert report.progress.failed_calls == 1
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [one["error"] for one in logged if one["event"] == "failed"] == ["HTTP 500: down"]
    again, model = sit(plan("single"), tmp_path, resume=True)
    assert len(model.requests) == 1
    assert again.failures == ()
    assert again.traces[2].steps[0].error is None


def test_a_play_that_breaks_costs_no_other_question(tmp_path):
    def reply(messages: Any) -> Any:
        return _raise(ZeroDivisionError("bug")) if "2 + 7" in str(messages) else WORDS

    report, _ = sit(plan("single"), tmp_path, reply)
    assert [trace.id for trace in report.traces] == ["q0", "q1", "q3"]
    assert [one.error for one in report.failures] == ["ZeroDivisionError: bug"]


def test_a_model_that_never_answers_ends_the_run_early(tmp_path):
    many = [Example(f"q{number}", f"What is {number} + 7?", "7") for number in range(50)]
    report, model = sit(plan("single", examples=many), tmp_path, failing_after(0), threads=2)
    assert report.stopped == (
        f"{HOPELESS} calls in a row were not answered, the last one: the server is down"
    )
    assert len(model.requests) <= HOPELESS + 2


def dollars_up_to(amount: float) -> Limits:
    return Limits(budget_usd=amount, price=dollars)


def test_a_budget_lets_no_call_begin_that_it_could_not_pay(tmp_path):
    dear = Reply("The answer is 7.", 1_000_000, 0, "gpt-4o-mini")  # .15 USD each
    report, model = sit(plan("debate"), tmp_path, dear, threads=1, limits=dollars_up_to(1.0))
    assert report.stopped.startswith("the budget of 1 US dollars is used up: 0.9 spent")
    assert len(model.requests) == 6
    assert report.progress.cost_usd == pytest.approx(0.9)
    again, model = sit(plan("debate"), tmp_path, dear, resume=True, threads=1, limits=dollars_up_to(1.4))
    assert len(model.requests) == 3
    assert again.progress.cost_usd == pytest.approx(1.35)


def test_a_budget_goes_by_what_the_server_says_that_it_charged(tmp_path):
    charged = Reply("The answer is 7.", 10, 5, "nobody/knows", cost_usd=0.3)
    report, _ = sit(plan("debate"), tmp_path, charged, threads=1, limits=dollars_up_to(1.0))
    assert report.progress.calls == 3
    assert (report.progress.cost_usd, report.progress.unpriced) == (pytest.approx(0.9), "")


def test_a_budget_that_cannot_be_kept_ends_the_run(tmp_path):
    report, model = sit(plan("single"), tmp_path, WORDS, threads=1, limits=dollars_up_to(1.0))
    assert "cannot be kept: a reply of 'm'" in report.stopped
    assert len(model.requests) == 1


@pytest.mark.parametrize("threads", [1, 8])
def test_a_budget_in_tokens_stops_and_more_of_it_goes_on_without_asking_twice(tmp_path, threads):
    first, asked = sit(plan(), tmp_path, threads=threads, limits=Limits(budget_tokens=200))  # 15 a call
    assert first.stopped.startswith("the budget of 200 tokens is used up")
    assert 13 <= len(asked.requests) <= 13 + threads
    second, further = sit(plan(), tmp_path, resume=True, threads=threads, limits=Limits(budget_tokens=360))
    assert second.stopped == ""
    assert len(asked.requests) + len(further.requests) == 24 == second.progress.calls
    assert len(second.traces) == 4


def test_calls_of_all_seeds_share_one_pace(tmp_path):
    begun = time.monotonic()
    report, _ = sit(plan("single", seeds=3), tmp_path, limits=Limits(per_minute=60 * 50))  # one in 20 ms
    assert len(report.traces) == 12
    assert time.monotonic() - begun >= 11 * 0.02


def interrupt_once(true: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Whoever watches presses Ctrl-C as soon as the progress is so."""

    def watch(progress: Any) -> None:
        if true(progress) and not progress.stopping:
            raise KeyboardInterrupt

    return watch


def test_a_wait_for_its_turn_ends_when_the_run_stops(tmp_path):
    watch = interrupt_once(lambda progress: progress.asked_now == 1)
    begun = time.monotonic()
    report, model = sit(plan(), tmp_path, watch=watch, limits=Limits(per_minute=0.01))
    assert time.monotonic() - begun < 600
    assert (report.stopped, len(model.requests)) == ("interrupted", 1)


def test_all_that_a_server_says_of_its_usage_is_in_the_trace_also_after_a_break(tmp_path):
    said = Reply("The answer is 7.", 100, 30, "m", "stop", 64, 20, 0.002)
    sit(plan("single"), tmp_path, said)
    (tmp_path / "traces.jsonl").write_text("")
    report, model = sit(plan("single"), tmp_path, resume=True)
    assert model.requests == []
    assert {trace.steps[0].usage for trace in report.traces} == {Usage(100, 30, 64, 20, 0.002, "m")}


def test_a_models_own_budget_ends_the_run_too(tmp_path):
    report, _ = sit(plan("single"), tmp_path, failing_after(2, BudgetExceeded("all spent")), threads=1)
    assert report.stopped == "all spent"
    assert len(report.traces) == 2


def test_ctrl_c_keeps_the_calls_under_way_and_the_run_goes_on_later(tmp_path):
    stopped = threading.Event()
    press = interrupt_once(lambda progress: progress.under_way == 2)

    def held(messages: Any) -> Reply:
        assert stopped.wait(60)
        return WORDS

    def watch(progress: Any) -> None:
        if progress.stopping:
            stopped.set()
        press(progress)

    report, model = sit(plan(), tmp_path, held, threads=2, watch=watch)
    assert (report.stopped, len(model.requests)) == ("interrupted", 2)
    again, further = sit(plan(), tmp_path, resume=True)
    assert len(further.requests) == 24 - 2
    assert len(again.traces) == 4


def test_a_pause_ends_when_the_run_stops(tmp_path):
    def models(seed: int, wait: Any) -> Any:
        return lambda messages: wait(6000.0)

    watch = interrupt_once(lambda progress: progress.under_way == 4)
    begun = time.monotonic()
    report, _ = sit(plan(), tmp_path, models=models, watch=watch)
    assert time.monotonic() - begun < 600
    assert (report.stopped, report.traces) == ("interrupted", ())


def test_a_folder_that_holds_a_run_is_left_alone_unless_asked(tmp_path):
    sit(plan("single"), tmp_path)
    with pytest.raises(UsageError, match="--resume"):
        sit(plan("single"), tmp_path)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (plan("cot"), r"another system \('single', now 'cot'\)"),
        (plan("single", temperature=0.5), r"another model \(temperature: None, now 0\.5\)"),
    ],
)
def test_a_run_does_not_go_on_as_another_one(tmp_path, other, message):
    sit(plan("single"), tmp_path)
    with pytest.raises(UsageError, match=message):
        sit(other, tmp_path, resume=True)


def test_more_questions_and_seeds_can_be_added_to_a_run(tmp_path):
    sit(plan("single", examples=FOUR[:2]), tmp_path)
    report, model = sit(plan("single", seeds=2), tmp_path, resume=True)
    assert len(report.traces) == 8
    assert len(model.requests) == 6


def test_the_key_of_a_job_changes_with_all_that_its_trace_depends_on():
    changed = [
        plan(), plan("vanilla"), plan("debate(rounds=3)"), plan(temperature=0.5), plan(seeds=2),
        plan(examples=[Example("q0", "What is 0 + 7?", "8")]),
        plan(examples=[Example("q", "What is 0 + 7?", "7")]),
        Plan(gsm8k, "svamp", FOUR, system("debate"), {"model": "m"}),
        Plan(gsm8k, "gsm8k", FOUR, system("debate"), {"model": "m"}, learned=topology("chain")(3, 2, 0)),
    ]  # fmt: skip
    keys = [one.jobs[-1 if one.seeds == 2 else 0].key for one in changed]
    assert len(set(keys)) == len(keys)
    assert plan().jobs[0].key == plan().jobs[0].key


def test_secrets_reach_no_file_and_do_not_make_a_run_ask_twice(tmp_path):
    key = "sk-" + "a1b2c3d4e5f6g7h8i9j0k1l2"
    chosen = plan()
    sit(chosen, tmp_path, f"My key is {key}. The answer is 7.")
    (tmp_path / "traces.jsonl").write_text("")
    _, model = sit(chosen, tmp_path, resume=True)
    assert model.requests == []
    for file in tmp_path.iterdir():
        assert key not in file.read_text()


def test_a_lone_surrogate_in_a_reply_breaks_nothing(tmp_path):
    report, _ = sit(plan("chain"), tmp_path, "\ud800 The answer is 7.")
    assert len(report.traces) == 4
    (tmp_path / "traces.jsonl").write_text("")
    _, model = sit(plan("chain"), tmp_path, resume=True)
    assert model.requests == []


def test_two_hundred_questions_at_once_lose_nothing(tmp_path):
    many = [Example(f"q{number}", f"What is {number} + 7?", "7") for number in range(240)]
    together = threading.Barrier(200, timeout=300)
    first = iter(range(200))

    def reply(messages: Any) -> Reply:
        if next(first, None) is not None:
            together.wait()
        return WORDS

    report, model = sit(plan("single", examples=many), tmp_path, reply, threads=240)
    assert len(report.traces) == len(model.requests) == 240
    assert report.failures == ()


def test_an_estimate_counts_every_call_and_asks_for_none():
    found = estimate(plan("vanilla", seeds=2))
    assert (found.questions, found.calls) == (8, 72)
    assert found.tokens_out == 72 * REPLY_TOKENS
    assert found.tokens_in > found.calls * 20
    assert found.cost_usd is None
    assert "no public price" in found.unpriced
    assert (estimate(plan("single", model="gpt-4o-mini")).cost_usd or 0) > 0
    assert estimate(plan("single", max_tokens=50)).tokens_out == 4 * 50
