"""Every extension point on one screen: what a metric, adapter, embedder, judge or model has to be.

A thing is added by one file and one line in its folder's table; see docs/adding.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import TraceError, UsageError
from counterpoint.graph import CollaborationGraph
from counterpoint.registry import suggest
from counterpoint.score import Score
from counterpoint.trace import Trace

__all__ = [
    "Adapter",
    "Benchmark",
    "ChatModel",
    "Context",
    "Embedder",
    "Example",
    "Metric",
    "Reply",
    "Source",
    "Topology",
    "Wiring",
]

T = TypeVar("T")


class Embedder(Protocol):
    """Texts to vectors: ``(n, d)`` floats with unit rows. Any callable of this shape will do.

    An attribute ``id`` (text) goes into signatures; without one the callable's name does.
    """

    def __call__(self, texts: list[str], /) -> NDArray[np.floating]: ...


@dataclass(frozen=True)
class Reply:
    """What a chat model answered, and what it used."""

    text: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    model: str = ""
    finish_reason: str = ""
    tokens_cached: int | None = None
    """Of the prompt's, those that the server had cached."""
    tokens_reasoning: int | None = None
    """Of the completion's, those that were spent on reasoning."""
    cost_usd: float | None = None
    """What the server says that it charged."""


class ChatModel(Protocol):
    """Chat messages (``{"role", "content"}``) to a reply."""

    def __call__(self, messages: Sequence[Mapping[str, Any]], /) -> Reply: ...


@dataclass(frozen=True)
class Example:
    """One question of a benchmark."""

    id: str
    """Stable in its benchmark: what disjointness of splits and pairing of runs go by."""
    task: str
    """The question as an agent is shown it, options included."""
    gold: str
    kind: Literal["number", "choice", "text"] = "number"
    options: Mapping[str, str] = field(default_factory=dict)
    """Letter to option text, for kind choice."""


class Benchmark(Protocol):
    """A module that loads one data set and grades answers to it."""

    def load(self, path: str, split: str) -> list[Example]:
        """The examples of ``split`` (``test``, ``train``) under ``path``, in the order of the data set."""
        ...

    def prompt(self, example: Example) -> str:
        """The task with the answer-line contract of its kind put last."""
        ...

    def read_answer(self, text: str, example: Example) -> str | None:
        """The answer that ``text`` gives, or None."""
        ...

    def grade(self, answer: str | None, example: Example) -> bool:
        """Whether the answer is the gold one."""
        ...


@dataclass(frozen=True)
class Wiring:
    """Who speaks in each of r rounds and who hears whom: what topologies give to the runtime."""

    speaks: NDArray[np.bool_]
    """(r, n): agent n speaks in round r."""
    within: NDArray[np.bool_]
    """(r, n, n): ``within[t, i, j]``: in round t, j hears what i says in it. Acyclic within a round."""
    across: NDArray[np.bool_]
    """(r - 1, n, n): ``across[t, i, j]``: in round t + 1, j hears what i said in round t."""


Topology = Callable[[int, int, int], Wiring]
"""``(agents, rounds, seed) -> Wiring``, for 1 to 12 agents; same seed, same wiring."""


@dataclass(frozen=True)
class Statement:
    """One proposition that a text puts forward."""

    text: str
    start: int
    end: int
    """Where it stands in the text; ``start == end`` where that is not known."""


@dataclass(frozen=True)
class Decomposition:
    """The propositions of one text."""

    statements: tuple[Statement, ...]
    capped: int = 0
    """Propositions left out because of the cap."""
    reason: str = ""
    """Why the text could not be decomposed; empty where it could."""


class Decomposer(Protocol):
    """Texts to their propositions; an attribute ``id`` goes into signatures."""

    def __call__(self, texts: Sequence[str], /) -> list[Decomposition]: ...


Question = Literal["preservation", "support", "contradiction", "stance"]
"""What a judge is asked about a pair (text, claim): does the text carry all that the claim says; does it,
as the source, entail the claim; does it contradict it; how far does who wrote it stand behind it."""


@dataclass(frozen=True)
class Verdict:
    """A judge's answer: a score in [0, 1], or None with a reason."""

    score: float | None
    reason: str = ""
    ambiguous: bool = False
    """The judge's word and number did not agree, also when asked again; the number decides."""


class Judge(Protocol):
    """Answers a question about pairs of texts, (text, claim); an attribute ``id`` goes into signatures."""

    def __call__(self, question: Question, pairs: Sequence[tuple[str, str]], /) -> list[Verdict]: ...


@dataclass(frozen=True)
class Source:
    """One file (or standard input) as an adapter sees it."""

    name: str
    """As a user would name it in a message: path as given, or ``-``."""
    head: bytes
    """The first 64 KiB, decompressed."""
    tail: bytes
    """The last 64 KiB where they are known without reading all; may be empty."""
    open: Callable[[], IO[bytes]]
    """Opens the content, decompressed, at its start."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the user said about the format: ``name_key``, ``role_key``, ``max_bytes``."""


class Adapter(Protocol):
    """A module that reads one trace format; its docstring shows a sample."""

    def sniff(self, source: Source) -> bool:
        """Is this file in the format? Judged by head, tail and name; no other adapter says yes."""
        ...

    def read(self, source: Source) -> Iterator[Trace | TraceError]:
        """Every run in the file; a TraceError in place of each record that cannot be read."""
        ...


@dataclass(frozen=True)
class Context:
    """All that a metric may look at: one trace, its graph, and how the user wants it judged."""

    trace: Trace
    graph: CollaborationGraph
    profile: str = "strict"
    embed: Embedder | None = None
    embed_missing: str = "no embedder was given"
    """Why ``embed`` is None."""
    answers: str | None = None
    """Kind of answer (number, choice, text); None: inferred from the gold answer."""
    answer_pattern: str | None = None
    regrade: bool = False
    """Grade from the texts even where the trace says ``correct``."""
    gold_given: bool = False
    """The gold answer was given beside the trace: grade anew."""
    judges: Callable[..., tuple[Judge, Decomposer]] | None = None
    """``judges(**options)``: who judges claims and who finds them, by the names in a metric's parameters."""
    memo: dict[str, Any] = field(default_factory=dict)

    def once(self, key: str, make: Callable[[], T]) -> T:
        """``make()``, computed once a trace and shared by metrics."""
        if key not in self.memo:
            self.memo[key] = make()
        value: T = self.memo[key]
        return value


Need = Literal["texts", "transfers", "embedder", "gold", "usage", "times", "calls", "judge", "forest"]


@dataclass(frozen=True)
class Metric:
    """A metric as a declared constant; its text form ``upr(threshold=0.6)`` round-trips."""

    name: str
    version: int
    """Raised whenever the same input may give another number."""
    summary: str
    """One line: what the number says."""
    compute: Callable[..., Score]
    """``compute(context, **parameters) -> Score``."""
    range: tuple[float | None, float | None]
    better: Literal["higher", "lower", ""]
    """Direction; empty where neither end is better."""
    unit: str
    source: str
    """Paper and equation, or why it is ours."""
    needs: tuple[Need, ...] = ()
    """What a trace must hold for it; `doctor` reads this."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameter names and their defaults."""
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Defaults that a profile changes: ``{"paper": {"tokenizer": "sklearn"}}``."""
    settings: tuple[str, ...] = ()
    """Settings beyond its parameters that can change the number: evidence, embedder, answers, profile."""
    embeds: Callable[[Context], Sequence[str]] | None = None
    """``embeds(context)``: texts of the trace that it will embed, so that those of many traces are embedded
    together; None: it embeds them itself, a trace at a time."""
    resources: Callable[..., Mapping[str, str]] | None = None
    """``resources(**parameters)``: hashes of the files that parameters name, for the signature."""
    bound: Mapping[str, Any] = field(default_factory=dict)
    """Parameters as set by the user; ``profile`` may be among them."""

    def bind(self, **parameters: Any) -> Metric:
        """The metric with parameters set; a UsageError names one that it does not have."""
        for name in parameters:
            if name != "profile" and name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise UsageError(
                    f"metric {self.name!r} has no parameter {name!r}"
                    f"{suggest(name, self.parameters)}; it has: {known}"
                )
        return replace(self, bound={**self.bound, **parameters})

    def values(self, profile: str) -> dict[str, Any]:
        """Every parameter's value under ``profile``."""
        chosen = {name: value for name, value in self.bound.items() if name != "profile"}
        return {**self.parameters, **self.profiles.get(profile, {}), **chosen}

    def __str__(self) -> str:
        if not self.bound:
            return self.name
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in sorted(self.bound.items()))})"
