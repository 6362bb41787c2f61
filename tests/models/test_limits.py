"""Limits on a chat model: how many at once, how often, and a budget that ends a run cleanly."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from counterpoint.contracts import Reply
from counterpoint.errors import CounterpointError, ModelError, UsageError
from counterpoint.models import limits as limits_module
from counterpoint.models.limits import BudgetExceeded, Limited, Limits
from counterpoint.models.scripted import Fault, Scripted

QUESTION = [{"role": "user", "content": "?"}]


def ten_tokens() -> Scripted:
    return Scripted(Reply("7", tokens_in=7, tokens_out=3, model="m"))


def calls_until_stopped(model: Limited) -> int:
    with suppress(BudgetExceeded):
        for _ in range(1000):
            model(QUESTION)
    return model.calls


@pytest.mark.parametrize(("budget", "calls"), [(1, 1), (10, 1), (19, 1), (20, 2), (95, 9)])
def test_a_budget_in_tokens_ends_before_the_call_that_would_go_beyond_it(budget, calls):
    model = Limited(ten_tokens(), budget_tokens=budget)
    assert calls_until_stopped(model) == calls
    assert model.spent == {"tokens": 10 * calls}


def test_a_budget_in_dollars_goes_by_the_price_of_each_reply():
    model = Limited(ten_tokens(), budget_usd=1.0, price=lambda reply: 0.3)
    assert calls_until_stopped(model) == 3
    assert model.spent == {"US dollars": pytest.approx(0.9)}


def test_the_message_says_what_was_spent():
    model = Limited(ten_tokens(), budget_tokens=25)
    calls_until_stopped(model)
    with pytest.raises(
        BudgetExceeded, match="budget of 25 tokens is used up: 20 spent, and a further call may take 10"
    ):
        model(QUESTION)


def test_a_used_up_budget_is_no_failure_of_the_model():
    assert issubclass(BudgetExceeded, CounterpointError)
    assert not issubclass(BudgetExceeded, ModelError)


def test_calls_under_way_count_as_the_dearest_so_far():
    inside, go = threading.Semaphore(0), threading.Event()

    def model(messages: Any) -> Reply:
        inside.release()
        go.wait(60)
        return Reply("7", 7, 3)

    limited = Limited(model, budget_tokens=40)
    go.set()
    limited(QUESTION)
    go.clear()
    inside.acquire()
    with ThreadPoolExecutor(8) as pool:
        under_way = [pool.submit(limited, QUESTION) for _ in range(3)]
        for _ in range(3):
            inside.acquire()
        with pytest.raises(BudgetExceeded):
            limited(QUESTION)
        go.set()
        assert [call.result().text for call in under_way] == ["7"] * 3
    assert limited.spent == {"tokens": 40}


def test_a_budget_is_used_up_to_its_end_though_sums_are_rounded():
    model = Limited(ten_tokens(), budget_usd=0.25, price=lambda reply: 0.01)
    for _ in range(25):
        model(())
    with pytest.raises(BudgetExceeded, match=r"0\.25 spent"):
        model(())


@pytest.mark.parametrize("limits", [{"budget_tokens": 100}, {"budget_usd": 1.0, "price": lambda reply: None}])
def test_a_budget_that_cannot_be_kept_ends_the_run(limits):
    model = Limited(lambda messages: Reply("7", model="free/m"), **limits)
    assert model(QUESTION).text == "7"
    with pytest.raises(BudgetExceeded, match="cannot be kept: a reply of 'free/m' says no usage, or has no"):
        model(QUESTION)


def test_a_failed_call_costs_nothing_and_gives_its_slot_back():
    model = Limited(Scripted([Fault.server_error(), "7"]), concurrency=1, budget_tokens=100)
    with pytest.raises(ModelError):
        model(QUESTION)
    assert model.spent == {"tokens": 0}
    assert model(QUESTION).text == "7"
    assert model.calls == 1


def test_no_more_calls_at_once_than_allowed():
    now, peak, lock, together = 0, 0, threading.Lock(), threading.Barrier(3, timeout=60)

    def model(messages: Any) -> Reply:
        nonlocal now, peak
        with lock:
            now += 1
            peak = max(peak, now)
        together.wait()  # none ends before three have begun; more could begin all the while
        time.sleep(0.005)
        with lock:
            now -= 1
        return Reply("7")

    limited = Limited(model, concurrency=3)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(limited, [QUESTION] * 48))
    assert peak == 3
    assert limited.calls == 48


def test_no_more_calls_a_minute_than_allowed():
    limited = Limited(Scripted("7"), per_minute=60 * 100)  # one in 10 ms
    begun = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(limited, [QUESTION] * 11))
    assert time.monotonic() - begun >= 0.1


def test_limits_change_no_settings():
    class Model(Scripted):
        settings = {"model": "m"}  # noqa: RUF012

    assert Limited(Model("7"), concurrency=1).settings == {"model": "m"}
    assert Limited(Scripted("7")).settings is None


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"concurrency": 0}, "concurrency of a chat model is a number above 0, not 0"),
        ({"per_minute": -1.0}, "per_minute"),
        ({"tokens_per_minute": 0}, "tokens_per_minute"),
        ({"per_minute": 1e-300}, "per_minute of a chat model is at least 0.001, not 1e-300"),
        ({"tokens_per_minute": 0.0001}, "tokens_per_minute of a chat model is at least 0.001"),
        ({"budget_usd": float("nan"), "price": lambda reply: 0.0}, "budget_usd"),
        ({"budget_usd": 1.0}, "needs prices"),
    ],
)
def test_limits_that_cannot_be_are_named(limits, told):
    with pytest.raises(UsageError, match=told):
        Limited(Scripted("7"), **limits)


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(limits_module, "time", clock)
    return clock


def test_tokens_a_minute_space_calls_by_what_they_take(clock):
    limits, model = Limits(tokens_per_minute=10 * 60), ten_tokens()  # a call's ten tokens in a second
    for _ in range(11):
        limits.ask(model, QUESTION, clock.wait)
    assert clock.waits == [pytest.approx(1)] * 10


def test_what_was_expected_of_a_call_is_corrected_by_what_it_took(clock):
    limits = Limits(tokens_per_minute=600)  # ten a second
    for taken in (100, 50, 0):
        limits.ask(lambda _, taken=taken: Reply("7", taken, 0), QUESTION, clock.wait)
    assert clock.waits == [pytest.approx(10), pytest.approx(5)]


def test_models_that_share_limits_share_budget_and_pace():
    limits = Limits(budget_tokens=25)
    limits.enter(Reply("6", 7, 3))
    limits.ask(ten_tokens(), QUESTION)
    with pytest.raises(BudgetExceeded, match="20 spent"):
        limits.ask(ten_tokens(), QUESTION)
    assert limits.calls == 2


def test_a_pause_that_is_broken_off_ends_the_call_before_it_was_begun():
    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    limits, model = Limits(per_minute=1, budget_tokens=30, concurrency=1), ten_tokens()
    limits.ask(model, QUESTION, stop)
    with pytest.raises(KeyboardInterrupt):
        limits.ask(model, QUESTION, stop)
    assert len(model.requests) == 1
    assert limits.ask(model, QUESTION, lambda seconds: None).text == "7"


def test_the_slowest_rate_is_a_pause_that_can_be_made():
    waited = []
    limits = Limits(tokens_per_minute=0.001)
    for _ in range(2):
        limits.ask(Scripted(Reply("7", tokens_in=10**12, tokens_out=1)), QUESTION, waited.append)
    assert 0 < waited[-1] <= threading.TIMEOUT_MAX
