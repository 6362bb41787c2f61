"""Small runs for tests of the pages, and a reader that fails where a page is no well-formed one."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from counterpoint.evaluate import evaluate
from counterpoint.store import Store
from counterpoint.trace import Trace, decode

EVIL = (
    '</script><script>window.pwned=1</script>"><img src=x onerror=window.pwned=1> \u202eright\u202c \x00\x07 '
    "' onfocus=window.pwned=1 autofocus ' \ud800 <!-- ]]> javascript:window.pwned=1 </main></table>"
)
METRICS = ("accuracy", "upr", "tokens_out", "steps")
INLINE = {"a", "bdi", "code", "span", "strong", "time"}
VOID = {"meta", "link", "img", "br", "input"}
TAGS = {
    "html", "head", "meta", "title", "link", "script", "body", "a", "header", "h1", "h2", "h3", "h4", "h5",
    "p", "nav", "ul", "ol", "li", "main", "section", "footer", "table", "caption", "thead", "tbody", "tr",
    "th", "td", "small", "details", "summary", "div", "span", "figure", "svg", "desc", "g", "path", "text",
    "circle", "pre", "code", "bdi", "strong", "dl", "dt", "dd", "time", "form", "label", "input", "select",
    "option", "button", "abbr",
}  # fmt: skip


def trace(
    name: str, *, steps: int = 4, text: str = "The answer is 7.", task: str = "3+4?", **fields: Any
) -> Trace:
    """Three agents in turn, each hearing the one before."""
    turns = [
        {
            "id": f"s{n}", "agent": f"agent {n % 3}", "text": text, "heard": [f"s{n - 1}"] if n else [],
            "usage": {"tokens_in": 10, "tokens_out": 5},
        }
        for n in range(steps)
    ]  # fmt: skip
    return decode({"id": name, "task": task, "gold": "7", "system": "team", "steps": turns, **fields})


def evil(name: str) -> Trace:
    """A trace that is hostile wherever a text can be."""
    call = {"id": "c", "tool": EVIL, "arguments": EVIL, "result": EVIL, "error": EVIL}
    first = {"id": EVIL, "agent": EVIL, "text": EVIL + " word" * 200_000, "answer": EVIL, "calls": [call]}
    second = {"id": EVIL + "2", "agent": "B" + EVIL, "text": EVIL, "heard": [EVIL], "error": EVIL}
    return decode(
        {
            "id": name, "task": EVIL, "gold": EVIL, "answer": EVIL, "system": EVIL, "steps": [first, second],
            "warnings": [EVIL],
        }
    )  # fmt: skip


def put(store: Store, *traces: Trace, origin: str = "world.jsonl") -> list[str]:
    """The traces as runs that wait to be scored."""
    return store.add_traces(traces, origin=origin)


def score(
    store: Store,
    run_id: str,
    *more: Trace,
    metrics: Sequence[str] = METRICS,
    claims: Sequence[dict[str, Any]] = (),
    error: str = "",
) -> None:
    """Score a run; with ``more`` it holds further traces."""
    run = store.run(run_id)
    assert run is not None
    traces = [*store.traces(run_id), *more]
    rows = evaluate(traces, list(metrics), run="world").rows
    store.keep(run_id, run.revision, traces=traces, rows=rows, claims=claims, error=error)


def scored(store: Store, *traces: Trace) -> list[str]:
    """The traces as runs with scores."""
    ids = put(store, *traces)
    for run_id in ids:
        score(store, run_id)
    return ids


def claim(life: int, event: str, agent: str, round: int, text: str) -> dict[str, Any]:
    told = {"life": life, "event": event, "agent": agent, "round": round, "text": text, "step": "s0"}
    return {"trace": "a", **told}


def three_runs(serving: Any) -> Any:
    """Two scored runs, one that waits, and their server."""
    served = serving()
    scored(
        served.store,
        trace("a", steps=6, correct=True),
        trace("b", task="How many marbles?", text="The answer is 8.", correct=False),
    )
    put(served.store, trace("c", task="And pears?", system="other"))
    lives = [claim(1, "born", "agent 0", 0, "It is 7."), claim(1, "adopted", "agent 1", 1, "It is 7.")]
    score(served.store, "a", claims=lives)
    return served


class Page(HTMLParser):
    """Tags, attributes and texts of a page; fails where tags do not nest, or an id stands twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open
        assert len(self.ids) == len(set(self.ids))
        assert set(self.tags) <= TAGS, set(self.tags) - TAGS
        assert not [name for name in self.attributes if name.startswith("on") or name == "style"]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.texts.append("" if tag in INLINE else " ")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All text, in one line."""
        return " ".join("".join(self.texts).split())
