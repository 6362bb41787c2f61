"""One question about many items, put to a chat model in batches whose replies are not trusted.

Conventions
-----------
* Items go out as JSON data under keys that nothing in them can know, and come back under the same keys. What
  comes back under another key is a reply about something else, and is not read.
* An item whose reply is missing, malformed, out of range or at odds with itself is asked once more. After
  that it is undefined, with the reason; or, where its word and number disagree but the number is usable,
  ambiguous.
* Usable answers are kept on disk as soon as they arrive; undefined ones never are, so that they are asked
  again by the next run.

What counts
-----------
A call is one request. Dollars are the model's public prices; with a budget in dollars a model without a
public price is an error, not free. A dry run counts the calls and tokens to come (four characters a token)
and makes none; what a second asking would add is not in it.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counterpoint.contracts import ChatModel, Reply
from counterpoint.errors import ModelError
from counterpoint.judges.replies import ReplyCache

__all__ = ["Answer", "Asker", "Instructions", "Mismatch", "Spending", "share"]

CHARACTERS_A_TOKEN = 4
REPLY_TOKENS = 25
"""Tokens of one item's answer, for estimates."""
_AGAIN = (
    "Your last reply could not be used for these items. Reply again for exactly these keys, "
    "with JSON only, in exactly the form described."
)


class Mismatch(Exception):
    """An answer whose word and number disagree; ``value`` is what the number alone says."""

    def __init__(self, value: Any, reason: str) -> None:
        super().__init__(reason)
        self.value = value


@dataclass(frozen=True)
class Instructions:
    """A question: what the model is told, and how one entry of its reply is read."""

    text: str
    read: Callable[[Mapping[str, Any]], Any]
    """An entry to a JSON-ready value; raises ValueError, or Mismatch, where it cannot be used."""
    batch: int = 10
    """Items in one request."""


@dataclass(frozen=True)
class Answer:
    """What is known about one item: a value, or why there is none."""

    value: Any
    reason: str = ""
    ambiguous: bool = False


@dataclass
class Spending:
    """What asking took, or in a dry run would take."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    cached: int = 0
    """Answers found on disk."""
    asked_again: int = 0
    ambiguous: int = 0
    undefined: int = 0


class _Spent(Exception):
    """The budget is used up."""


@dataclass
class Asker:
    """A chat model with a memory, a budget and a second chance for every item."""

    chat: ChatModel
    name: str
    cache: Path | None = None
    calls: int | None = None
    usd: float | None = None
    dry_run: bool = False
    threads: int = 4
    spending: Spending = field(default_factory=Spending)
    _known: dict[str, Answer] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=threading.Lock, repr=False)
    _broken: str = ""

    def ask(self, instructions: Instructions, items: Sequence[Mapping[str, str]]) -> list[Answer]:
        """An answer an item, in order; equal items are asked once.

        Raises ModelError where the model cannot be reached.
        """
        keys = [self._key(instructions, item) for item in items]
        todo = {key: item for key, item in zip(keys, items, strict=True) if key not in self._known}
        if todo and self.cache is not None:
            kept = ReplyCache(self.cache).get(list(todo))
            self.spending.cached += len(kept)
            for key, value in kept.items():
                stored = json.loads(value)
                self._known[key] = Answer(stored["value"], "", stored["ambiguous"])
                del todo[key]
        pending = list(todo.items())
        batches = [pending[at : at + instructions.batch] for at in range(0, len(pending), instructions.batch)]
        undefined: dict[str, Answer] = {}
        if len(batches) > 1 and self.threads > 1 and not self.dry_run:
            with ThreadPoolExecutor(self.threads) as pool:
                found = list(pool.map(lambda batch: self._ask_batch(instructions, batch), batches))
        else:
            found = [self._ask_batch(instructions, batch) for batch in batches]
        for answers in found:
            for key, answer in answers.items():
                (undefined if answer.value is None else self._known)[key] = answer
        self.spending.undefined += len(undefined)
        self.spending.ambiguous += sum(self._known[key].ambiguous for key in todo if key in self._known)
        return [self._known.get(key) or undefined[key] for key in keys]

    def _key(self, instructions: Instructions, item: Mapping[str, str]) -> str:
        parts = json.dumps([self.name, instructions.text, dict(item)], sort_keys=True)
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()

    def _ask_batch(
        self, instructions: Instructions, batch: list[tuple[str, Mapping[str, str]]]
    ) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        left, again = batch, False
        second: dict[str, Answer] = {}
        while left:
            try:
                read = self._read(instructions, left, again)
            except _Spent as spent:
                answers.update({key: second.get(key, Answer(None, str(spent))) for key, _ in left})
                break
            good = {key: answer for key, answer in read.items() if not answer.reason}
            self._keep(good)
            answers.update(good)
            # Where both replies have a usable number the later one decides.
            second.update({key: _settled(answer, second.get(key)) for key, answer in read.items()})
            left = [(key, item) for key, item in left if key not in good]
            if again:
                settled = {key: second[key] for key, _ in left}
                self._keep({key: answer for key, answer in settled.items() if answer.value is not None})
                answers.update(settled)
                break
            self.spending.asked_again += len(left)
            again = True
        return answers

    def _keep(self, answers: Mapping[str, Answer]) -> None:
        if self.cache is not None and answers:
            ReplyCache(self.cache).put(
                {
                    key: json.dumps({"value": answer.value, "ambiguous": answer.ambiguous})
                    for key, answer in answers.items()
                }
            )

    def _read(
        self, instructions: Instructions, batch: list[tuple[str, Mapping[str, str]]], again: bool
    ) -> dict[str, Answer]:
        """One request: an answer an item; with a reason where it is not to be trusted (yet)."""
        names = {secrets.token_hex(4): key for key, _ in batch}
        items = [{"key": name, **item} for name, (_, item) in zip(names, batch, strict=True)]
        text = json.dumps({"items": items}, ensure_ascii=True)
        messages = [
            {"role": "system", "content": instructions.text},
            {"role": "user", "content": f"{text}\n{_AGAIN}" if again else text},
        ]
        entries, problem = _entries(self._request(messages, len(batch)).text)
        answers = {}
        for name, key in names.items():
            found = [entry for entry in entries if entry.get("key") == name]
            if problem or len(found) != 1:
                count = "no" if not found else "more than one"
                answers[key] = Answer(None, problem or f"the judge gave {count} answer about this item")
                continue
            try:
                answers[key] = Answer(instructions.read(found[0]))
            except Mismatch as mismatch:
                answers[key] = Answer(mismatch.value, str(mismatch), ambiguous=True)
            except ValueError as error:
                answers[key] = Answer(None, f"the judge's answer could not be used: {error}")
        return answers

    def _request(self, messages: Sequence[Mapping[str, str]], items: int) -> Reply:
        estimate = sum(len(message["content"]) for message in messages) // CHARACTERS_A_TOKEN
        with self._lock:
            self._check_budget()
            self.spending.calls += 1
            if self.dry_run:
                self._bill(Reply("", estimate, items * REPLY_TOKENS))
                raise _Spent("dry run: nothing was asked")
        try:
            reply = self.chat(messages)
        except ModelError as error:
            self._broken = str(error)
            raise
        with self._lock:
            tokens_in = estimate if reply.tokens_in is None else reply.tokens_in
            said = len(reply.text) // CHARACTERS_A_TOKEN
            self._bill(
                Reply("", tokens_in, said if reply.tokens_out is None else reply.tokens_out, reply.model)
            )
        return reply

    def _check_budget(self) -> None:
        if self._broken:
            raise ModelError(self._broken)
        if self.dry_run:
            return
        if self.calls is not None and self.spending.calls >= self.calls:
            raise _Spent(
                f"the budget of {self.calls} calls is used up: raise max_calls, and run again to go on"
            )
        if self.usd is not None and self.spending.usd >= self.usd:
            raise _Spent(f"the budget of {self.usd} USD is used up: raise max_usd, and run again to go on")

    def _bill(self, reply: Reply) -> None:
        self.spending.tokens_in += reply.tokens_in or 0
        self.spending.tokens_out += reply.tokens_out or 0
        price = _price_usd(reply, self.name.partition("@")[0])
        if price is None and self.usd is not None:
            raise ModelError(
                f"no public price is known for model {self.name.partition('@')[0]!r}: "
                "give a budget in calls (max_calls) instead of dollars"
            )
        self.spending.usd += price or 0.0


def _settled(answer: Answer, earlier: Answer | None) -> Answer:
    """What holds of an item after another reply: its number if there is one, else the earlier number."""
    chosen = earlier if answer.value is None and earlier is not None and earlier.value is not None else answer
    return Answer(chosen.value, "", True) if chosen.value is not None else answer


def _price_usd(reply: Reply, model: str) -> float | None:
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=reply.tokens_in or 0, output_tokens=reply.tokens_out or 0)
    for name in (model, reply.model):
        try:
            return float(calc_price(usage, name).total_price)
        except (LookupError, ValueError):
            continue
    return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name that stands twice in it says two things, and so nothing."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _entries(text: str) -> tuple[list[Mapping[str, Any]], str]:
    """The entries of a reply ``{"answers": [{"key": ...}, ...]}``, fenced or not; or what is wrong."""
    body = text.strip()
    if body.startswith("```"):
        body = body.partition("\n")[2].rpartition("```")[0]
    try:
        document = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return [], "the judge's reply is no JSON"
    entries = document.get("answers") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return [], 'the judge\'s reply has no list "answers"'
    return [entry for entry in entries if isinstance(entry, dict)], ""


def share(entry: Mapping[str, Any], name: str) -> float:
    """A number in [0, 1] of an entry; ValueError says what stands there instead."""
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is no number")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value:g}, not in [0, 1]")
    return float(value)
