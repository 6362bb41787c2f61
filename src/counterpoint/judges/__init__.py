"""Judges: who says whether one text carries what another claims. Importing this loads none of them.

``make(judge="llm", model=..., base_url=...)`` gives a judge and a decomposer by name; both ask the same chat
model, and share its cache and budget.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoint.errors import UsageError
from counterpoint.registry import lookup

if TYPE_CHECKING:
    from counterpoint.contracts import ChatModel, Decomposer, Embedder, Judge

__all__ = ["CAP", "TABLE", "identity", "make"]

TABLE: dict[str, str] = {
    "lexical": "counterpoint.judges.lexical:Lexical",
    "nli": "counterpoint.judges.nli:Entailment",
    "llm": "counterpoint.judges.llm:Asked",
}

CAP = 15
"""Most claims that a chat model finds in one text, unless told otherwise."""


def make(
    *,
    judge: str = "lexical",
    decomposer: str = "sentences",
    model: str = "",
    base_url: str = "",
    cap: int | None = None,
    max_calls: int | None = None,
    max_usd: float | None = None,
    chat: ChatModel | None = None,
    embed: Embedder | None = None,
    cache: Path | None = None,
    dry_run: bool = False,
) -> tuple[Judge, Decomposer]:
    """A judge and a decomposer.

    Parameters
    ----------
    judge: a name of `TABLE`.
    decomposer: a name of `decomposers.TABLE`.
    model, base_url: for ``llm``: the chat model and its endpoint; for ``nli``: the cross-encoder.
    cap: most claims of one text; None: `CAP` for ``llm``, no cap for ``sentences``.
    max_calls, max_usd: what may be spent on the chat model.
    chat: the chat model itself, instead of ``model`` and ``base_url``.
    embed: for ``lexical``; None: words alone.
    cache: folder in which a chat model's replies are kept; None: nowhere.
    dry_run: count the calls to come and make none.

    Raises
    ------
    UsageError for an unknown name, or a chat model that is needed and not named.
    """
    asker = None
    if "llm" in (judge, decomposer):
        asker = _asker(model, base_url, chat, cache, calls=max_calls, usd=max_usd, dry_run=dry_run)
    makers: dict[str, Callable[[], Any]] = {
        "lexical": lambda: lookup("judge", judge)(embed),
        "nli": lambda: lookup("judge", judge)(model),
        "llm": lambda: lookup("judge", judge)(asker),
    }
    judging = makers.get(judge, lambda: lookup("judge", judge)())()
    if decomposer == "llm":
        return judging, lookup("decomposer", decomposer)(asker, cap=CAP if cap is None else cap)
    return judging, lookup("decomposer", decomposer)(cap=cap)


def identity(judge: str, decomposer: str) -> dict[str, str]:
    """Versions of who judges and who decomposes, for a signature; known without loading a model."""
    return {
        "judge_version": str(getattr(lookup("judge", judge), "VERSION", judge)),
        "decomposer_version": str(getattr(lookup("decomposer", decomposer), "VERSION", decomposer)),
    }


def _asker(model: str, base_url: str, chat: ChatModel | None, cache: Path | None, **limits: Any) -> Any:
    from counterpoint.judges.asking import Asker

    name = f"{model}@{base_url}" if base_url else model
    if chat is None:
        if not model:
            raise UsageError("judge=llm needs the name of a chat model: judge=llm, model=NAME, base_url=URL")
        where = {"base_url": base_url} if base_url else {}
        chat = lookup("model", "chat_http")(model=model, temperature=0.0, **where)
    return Asker(chat, name=name or str(getattr(chat, "id", type(chat).__name__)), cache=cache, **limits)
