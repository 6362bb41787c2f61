"""A chat model within limits: so many calls at once, so many a minute, and a budget that stops a run cleanly.

    model = Limited(ChatHTTP(...), concurrency=32, per_minute=500, budget_usd=5.0, price=price_of)

Conventions
-----------
* `BudgetExceeded` is raised *in place of* a call, never after one: no reply that was paid for is lost. It is
  no ModelError, so that it ends a run where a failed call is only recorded.
* A call is started only while spent + what the calls under way may cost stays below the budget. What one may
  cost is taken to be the most that one has cost so far, so a budget is overdrawn by the first calls only:
  those that were started before the first reply.
* A cache goes outside (``Cached(Limited(model))``): what it knows costs nothing.

What counts
-----------
Prompt and completion tokens as the server says. A reply without them, or of a model without a known price,
makes the next call a BudgetExceeded: a budget that cannot be kept is an error, not a hope. Attempts that
failed cost nothing here, whatever the server bills.

Source: ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from counterpoint.contracts import ChatModel, Reply
from counterpoint.errors import BudgetExceeded, UsageError

__all__ = ["BudgetExceeded", "Limited"]

Price = Callable[[Reply], float | None]
"""Dollars that a reply cost; None where no price is known."""


class Limited:
    """A chat model that asks another one, within limits; any number of threads may call it."""

    def __init__(
        self,
        model: ChatModel,
        *,
        concurrency: int | None = None,
        per_minute: float | None = None,
        budget_tokens: int | None = None,
        budget_usd: float | None = None,
        price: Price | None = None,
    ) -> None:
        given = {
            "concurrency": concurrency,
            "per_minute": per_minute,
            "budget_tokens": budget_tokens,
            "budget_usd": budget_usd,
        }
        for name, value in given.items():
            if value is not None and not value > 0:
                raise UsageError(f"{name} of a chat model is a number above 0, not {value!r}")
        if budget_usd is not None and price is None:
            raise UsageError("a budget in dollars needs prices: Limited(..., price=...)")
        self.model = model
        self.calls = 0
        """Replies so far."""
        self._slots = threading.BoundedSemaphore(concurrency) if concurrency else None
        self._pace = _Pace(60.0 / per_minute) if per_minute else None
        self._budgets = [
            *([_Budget("tokens", budget_tokens, _tokens)] if budget_tokens else []),
            *([_Budget("US dollars", budget_usd, price)] if budget_usd and price else []),
        ]
        self._lock = threading.Lock()

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """Those of the model: limits change no reply."""
        settings: Mapping[str, Any] | None = getattr(self.model, "settings", None)
        return settings

    @property
    def spent(self) -> dict[str, float]:
        """Unit to what was spent of it, for each budget."""
        with self._lock:
            return {budget.unit: budget.spent for budget in self._budgets}

    def __call__(self, messages: Sequence[Mapping[str, Any]], /) -> Reply:
        """The model's reply. Raises BudgetExceeded where a further call would go beyond a budget."""
        if self._slots is None:
            return self._ask(messages)
        with self._slots:
            return self._ask(messages)

    def _ask(self, messages: Sequence[Mapping[str, Any]]) -> Reply:
        with self._lock:
            for budget in self._budgets:
                budget.check()
            for budget in self._budgets:
                budget.under_way += 1
        reply: Reply | None = None
        try:
            if self._pace is not None:
                self._pace.wait()
            reply = self.model(messages)
        finally:
            with self._lock:
                for budget in self._budgets:
                    budget.under_way -= 1
                    if reply is not None:
                        budget.enter(reply)
                self.calls += reply is not None
        return reply


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
        if self.spent + (self.under_way + 1) * self.most > self.limit:
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
    """Lets calls through at even distances; those who come together are told their turns at once."""

    def __init__(self, distance_s: float) -> None:
        self.distance_s = distance_s
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self.distance_s
        if turn > now:
            time.sleep(turn - now)


def _tokens(reply: Reply) -> float | None:
    if reply.tokens_in is None or reply.tokens_out is None:
        return None
    return reply.tokens_in + reply.tokens_out
