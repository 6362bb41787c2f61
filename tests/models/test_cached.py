"""The cache of replies: what is one request, what is not, and what survives."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from counterpoint.contracts import Reply
from counterpoint.errors import ModelError, UsageError
from counterpoint.models import cached as cached_module
from counterpoint.models.cached import Cached, request_key
from counterpoint.models.scripted import Fault, Scripted

QUESTION = [{"role": "user", "content": "What is 3 + 4?"}]
GREEDY = {"model": "m", "temperature": 0.0}


def numbered() -> Scripted:
    """Says 1, 2, 3, ..."""
    return Scripted(str(number) for number in range(1, 100))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run" / "replies.sqlite"


def asked(model: Any, times: int = 1, question: Any = QUESTION) -> list[str]:
    return [model(question).text for _ in range(times)]


def test_at_temperature_zero_equal_requests_are_asked_once(file):
    model = Cached(numbered(), file, settings=GREEDY)
    assert asked(model, 3) == ["1", "1", "1"]
    assert (model.hits, model.misses) == (2, 1)
    model.close()


def test_above_it_samples_stay_distinct_and_come_back_in_order(file):
    for _ in range(2):
        model = Cached(numbered(), file, settings={"model": "m", "temperature": 0.7})
        assert asked(model, 3) == ["1", "2", "3"]
        model.close()
    assert (model.hits, model.misses) == (3, 0)


def test_a_reply_comes_back_whole(file):
    reply = Reply("7\n\u20ac", tokens_in=3, tokens_out=None, model="m", finish_reason="length")
    for source in (lambda messages: reply, Scripted([])):
        model = Cached(source, file, settings=GREEDY)
        assert model(QUESTION) == reply
        model.close()


@pytest.mark.parametrize(
    ("settings", "question"),
    [
        ({**GREEDY, "model": "n"}, QUESTION),
        ({**GREEDY, "seed": 1}, QUESTION),
        ({**GREEDY, "max_tokens": 5}, QUESTION),
        (GREEDY, [{"role": "user", "content": "What is 3 + 4 ?"}]),
        (GREEDY, [{"role": "system", "content": "What is 3 + 4?"}]),
        (GREEDY, QUESTION * 2),
    ],
)
def test_anything_else_is_another_request(settings, question, file):
    one = Cached(Scripted(["first"]), file, settings=GREEDY)
    other = Cached(Scripted(["second"]), file, settings=settings)
    assert asked(one) == ["first"]
    assert asked(other, question=question) == ["second"]
    one.close()
    other.close()


def test_the_order_of_keys_does_not_count():
    assert request_key({"a": 1, "b": 2}, [{"role": "user", "content": "?"}]) == request_key(
        {"b": 2, "a": 1}, [{"content": "?", "role": "user"}]
    )


def test_failures_are_not_kept(file):
    model = Cached(Scripted([Fault.server_error(), "7"]), file, settings=GREEDY)
    with pytest.raises(ModelError):
        model(QUESTION)
    assert asked(model, 2) == ["7", "7"]
    model.close()


def test_of_equal_requests_at_once_one_asks_and_the_others_wait(file):
    calls = []

    def slow(messages: Any) -> Reply:
        calls.append(messages)
        time.sleep(0.05)  # others would ask meanwhile, if they could
        return Reply("7")

    model = Cached(slow, file, settings=GREEDY)
    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(lambda _: model(QUESTION).text, range(64))) == {"7"}
    assert len(calls) == 1
    model.close()


def test_different_requests_do_not_wait_for_each_other(file):
    both = threading.Barrier(2, timeout=60)

    def meet(messages: Any) -> Reply:
        both.wait()
        return Reply(messages[0]["content"])

    model = Cached(meet, file, settings=GREEDY)
    with ThreadPoolExecutor(2) as pool:
        questions = [[{"role": "user", "content": name}] for name in "ab"]
        assert [reply.text for reply in pool.map(model, questions)] == ["a", "b"]
    model.close()


def test_two_caches_on_one_file_share_it(file):
    one, two = (Cached(numbered(), file, settings=GREEDY) for _ in range(2))
    assert asked(one) == asked(two) == ["1"]
    assert (two.hits, two.misses) == (1, 0)
    one.close()
    two.close()


def test_a_cache_waits_for_another_process_that_makes_the_file(file, monkeypatch):
    file.parent.mkdir()
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        other.close()

    monkeypatch.setattr(cached_module.time, "sleep", wait)
    model = Cached(Scripted("7"), file, settings=GREEDY)
    assert (asked(model), len(waits)) == (["7"], 1)
    model.close()


def test_the_models_own_settings_are_taken(file):
    class Model(Scripted):
        settings = GREEDY

    model = Cached(Model(["7"]), file)
    assert asked(model, 2) == ["7", "7"]
    model.close()


def test_a_model_that_says_no_settings_is_refused(file):
    with pytest.raises(UsageError, match=r"settings of Scripted"):
        Cached(Scripted("7"), file)


def test_a_file_that_is_no_cache_is_named(file):
    file.parent.mkdir()
    file.write_text("no database, but long enough to be taken for one" * 20)
    with pytest.raises(ModelError, match=r"replies.sqlite cannot be used: file is not a database"):
        Cached(Scripted("7"), file, settings=GREEDY)


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
def test_only_its_owner_can_read_the_file(file):
    Cached(Scripted("7"), file, settings=GREEDY).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_reply_with_half_a_character_is_kept_and_not_lost(file):
    asked = []

    def model(messages):
        asked.append(messages)
        return Reply("half \ud800", model="m")

    for _ in range(2):
        cached = Cached(model, file, settings={"model": "m", "temperature": 0})
        assert cached([{"role": "user", "content": "lone \udc00"}]) == Reply("half \ufffd", model="m")
        cached.close()
    assert len(asked) == 1
