"""Judges: who says whether one text carries what another claims. Importing this loads none of them.

``make(judge="llm", model=..., base_url=...)`` gives a judge and a decomposer by name; both ask the same chat
model, and share its cache and budget.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoint.errors import UsageError
from counterpoint.registry import lookup

if TYPE_CHECKING:
    from counterpoint.contracts import ChatModel, Decomposer, Embedder, Judge
    from counterpoint.judges.asking import Asker

__all__ = ["CAP", "TABLE", "make"]

TABLE: dict[str, str] = {
    "lexical": "counterpoint.judges.lexical:Lexical",
    "nli": "counterpoint.judges.nli:Entailment",
    "llm": "counterpoint.judges.llm:Asked",
}

CAP = 15
"""Most claims that a chat model finds in one text, unless told otherwise."""


def make(
    *,
    judge: str | Judge = "lexical",
    decomposer: str | Decomposer = "sentences",
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
    judge: a name of `TABLE`, or a judge.
    decomposer: a name of `decomposers.TABLE`, or a decomposer.
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
    return (
        _judge(judge, model, embed, asker) if isinstance(judge, str) else judge,
        _decomposer(decomposer, cap, asker) if isinstance(decomposer, str) else decomposer,
    )


def _judge(name: str, model: str, embed: Embedder | None, asker: Asker | None) -> Judge:
    arguments: dict[str, tuple[Any, ...]] = {"lexical": (embed,), "nli": (str(model),), "llm": (asker,)}
    made: Judge = lookup("judge", name)(*arguments.get(name, ()))
    return made


def _decomposer(name: str, cap: int | None, asker: Asker | None) -> Decomposer:
    made: Decomposer
    if name == "llm":
        made = lookup("decomposer", name)(asker, cap=CAP if cap is None else cap)
    else:
        made = lookup("decomposer", name)(cap=cap)
    return made


def _asker(model: str, base_url: str, chat: ChatModel | None, cache: Path | None, **limits: Any) -> Asker:
    from counterpoint.judges.asking import Asker

    name = f"{model}@{base_url}" if base_url else model
    if chat is None:
        if not model:
            raise UsageError("judge=llm needs the name of a chat model: judge=llm, model=NAME, base_url=URL")
        where = {"base_url": base_url} if base_url else {}
        chat = lookup("model", "chat_http")(model=str(model), temperature=0.0, **where)
    return Asker(chat, name=name or str(getattr(chat, "id", type(chat).__name__)), cache=cache, **limits)
