"""Limits on chat models: so many calls at once, so many a minute, and a budget that stops a run cleanly.

    model = Limited(ChatHTTP(...), concurrency=32, per_minute=500, budget_usd=5.0, price=price_of)

    limits = Limits(tokens_per_minute=200_000, budget_tokens=2_000_000)    # shared by several models
    reply = limits.ask(model, messages)

Conventions
-----------
* `BudgetExceeded` is raised *in place of* a call, never after one: no reply that was paid for is lost. It is
  no ModelError, so that it ends a run where a failed call is only recorded.
* A call is started only while spent + what the calls under way may cost stays below the budget. What one may
  cost is taken to be the most that one has cost so far, so a budget is overdrawn by the first calls only:
  those that were started before the first reply.
* Calls start at even distances, so that no minute, whenever it begins, has more of them than allowed. What a
  call will take in tokens is the mean so far, before the first reply the words of its prompt; the
  difference is made up for by the calls after it.
* A cache goes outside (``Cached(Limited(model))``): what it knows costs nothing.

What counts
-----------
Prompt and completion tokens as the server says. A reply without them, or without a known price, makes the
next call a BudgetExceeded: a budget that cannot be kept is an error, not a hope. Attempts that failed cost
nothing here, whatever the server bills.

Source: ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from counterpoint.contracts import ChatModel, Reply
from counterpoint.errors import BudgetExceeded, UsageError
from counterpoint.models._script import estimate_tokens, text_of

__all__ = ["BudgetExceeded", "Limited", "Limits"]

SLOWEST = 0.001
"""Calls, or tokens, a minute: fewer is a slip of the pen, and a pause that no clock can make."""
_RATES = ("per_minute", "tokens_per_minute")
Price = Callable[[Reply], float | None]
"""Dollars that a reply cost; None where no price is known."""


class Limits:
    """What calls may take, whichever models are asked; any number of threads may share it."""

    def __init__(
        self,
        *,
        concurrency: int | None = None,
        per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        budget_tokens: int | None = None,
        budget_usd: float | None = None,
        price: Price | None = None,
    ) -> None:
        given = {
            "concurrency": concurrency,
            "per_minute": per_minute,
            "tokens_per_minute": tokens_per_minute,
            "budget_tokens": budget_tokens,
            "budget_usd": budget_usd,
        }
        for name, value in given.items():
            if value is not None and not value > 0:
                raise UsageError(f"{name} of a chat model is a number above 0, not {value!r}")
            if value is not None and name in _RATES and value < SLOWEST:
                raise UsageError(f"{name} of a chat model is at least {SLOWEST:g}, not {value!r}")
        if budget_usd is not None and price is None:
            raise UsageError("a budget in dollars needs prices: Limited(..., price=...)")
        self.calls = 0
        """Replies so far."""
        self._slots: AbstractContextManager[Any] = (
            threading.BoundedSemaphore(concurrency) if concurrency else nullcontext()
        )
        self._calls_pace = _Pace(per_minute)
        self._tokens_pace = _Pace(tokens_per_minute)
        self._tokens = 0.0
        self._budgets = [
            *([_Budget("tokens", budget_tokens, _tokens)] if budget_tokens else []),
            *([_Budget("US dollars", budget_usd, price)] if budget_usd and price else []),
        ]
        self._lock = threading.Lock()

    @property
    def spent(self) -> dict[str, float]:
        """Unit to what was spent of it, for each budget."""
        with self._lock:
            return {budget.unit: budget.spent for budget in self._budgets}

    def enter(self, reply: Reply) -> None:
        """Count a reply that was paid for before."""
        with self._lock:
            self._count(reply)

    def ask(
        self,
        model: ChatModel,
        messages: Sequence[Mapping[str, Any]],
        wait: Callable[[float], object] = time.sleep,
    ) -> Reply:
        """The model's reply. Raises BudgetExceeded where a further call would go beyond a budget.

        Parameters
        ----------
        wait: how a pause is made, in seconds; what it raises ends the call before it was begun.
        """
        with self._slots, self._under_way():
            expected = self._pause(messages, wait)
            reply = model(messages)
            with self._lock:
                self._tokens_pace.correct((_tokens(reply) or expected) - expected)
                self._count(reply)
        return reply

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        with self._lock:
            for budget in self._budgets:
                budget.check()
            for budget in self._budgets:
                budget.under_way += 1
        try:
            yield
        finally:
            with self._lock:
                for budget in self._budgets:
                    budget.under_way -= 1

    def _pause(self, messages: Sequence[Mapping[str, Any]], wait: Callable[[float], object]) -> float:
        """Wait for this call's turn; the tokens that it is expected to take."""
        words = 0 if self.calls else estimate_tokens(*(text_of(one.get("content")) for one in messages))
        with self._lock:
            expected = self._tokens / self.calls if self.calls else words
            seconds = max(self._calls_pace.turn(1), self._tokens_pace.turn(expected))
        if seconds > 0:
            wait(min(seconds, threading.TIMEOUT_MAX))
        return expected

    def _count(self, reply: Reply) -> None:
        self.calls += 1
        self._tokens += _tokens(reply) or 0
        for budget in self._budgets:
            budget.enter(reply)


class Limited:
    """A chat model that asks another one, within limits of its own: the parameters of `Limits`."""

    def __init__(self, model: ChatModel, **limits: Any) -> None:
        self.model, self.limits = model, Limits(**limits)

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """Those of the model: limits change no reply."""
        settings: Mapping[str, Any] | None = getattr(self.model, "settings", None)
        return settings

    @property
    def calls(self) -> int:
        """Replies so far."""
        return self.limits.calls

    @property
    def spent(self) -> dict[str, float]:
        """Unit to what was spent of it, for each budget."""
        return self.limits.spent

    def __call__(self, messages: Sequence[Mapping[str, Any]], /) -> Reply:
        """The model's reply. Raises BudgetExceeded where a further call would go beyond a budget."""
        return self.limits.ask(self.model, messages)


_ROUNDED = 1 + 1e-9
"""A sum of many prices is a little more or less than it is: 24 times 0.01 is 0.24000000000000007."""


class _Budget:
    """What may be spent of one unit, what was spent, and what is being spent."""

    def __init__(self, unit: str, limit: float, cost: Price) -> None:
        self.unit, self.limit, self.cost = unit, limit, cost
        self.spent = 0.0
        self.most = 0.0
        self.under_way = 0
        self.unknown = ""
        """The model of a reply whose cost is not known."""

    def check(self) -> None:
        if self.unknown:
            raise BudgetExceeded(
                f"the budget of {self.limit:g} {self.unit} cannot be kept: a reply of {self.unknown!r} says "
                "no usage, or has no known price"
            )
        if self.spent + (self.under_way + 1) * self.most > self.limit * _ROUNDED:
            raise BudgetExceeded(
                f"the budget of {self.limit:g} {self.unit} is used up: {self.spent:.6g} spent, and a further "
                f"call may take {self.most:.6g}"
            )

    def enter(self, reply: Reply) -> None:
        cost = self.cost(reply)
        if cost is None:
            self.unknown = self.unknown or reply.model or "unknown"
            return
        self.spent += cost
        self.most = max(self.most, cost)


class _Pace:
    """Lets so much a minute through, evenly; those who come together are told their turns at once."""

    def __init__(self, per_minute: float | None) -> None:
        self.distance_s = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0

    def turn(self, amount: float) -> float:
        """Seconds until this amount may go."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + amount * self.distance_s
        return turn - now

    def correct(self, amount: float) -> None:
        """It was so much more than was said."""
        self._next += amount * self.distance_s


def _tokens(reply: Reply) -> float | None:
    if reply.tokens_in is None or reply.tokens_out is None:
        return None
    return reply.tokens_in + reply.tokens_out
