"""Traces times metrics to rows; rows to summaries. A metric's failure is a row with a reason, never a crash.

scores = evaluate(read("runs/"), metrics=["ids", "upr"])
scores.rows          one row a trace and metric, in that order
scores.summary()     one entry a system and metric, then one over all (system None)
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters.gold import read_gold
from counterpoint.answers import read_answer
from counterpoint.contracts import Context, Decomposer, Embedder, Judge, Metric
from counterpoint.errors import CounterpointError, ModelError, UsageError
from counterpoint.graph import CollaborationGraph
from counterpoint.judges import make as make_judges
from counterpoint.metrics import DEFAULT, metrics_of
from counterpoint.models.embed import TextEmbedder
from counterpoint.models.embed import embedder as load_embedder
from counterpoint.models.vectors import cache_folder
from counterpoint.score import Row, Score
from counterpoint.scores import Scores, TraceInfo
from counterpoint.trace import EVIDENCE, Trace, failed_calls, seed, task_id

__all__ = ["Scores", "evaluate"]

PROFILES = ("strict", "paper")
KINDS = ("number", "choice", "text")
FAILED = "calls of this question failed: run it again with --resume"
"""Why nothing is said of a trace in which an outage stands in for what agents would have said."""
CHUNK = 64
"""Traces whose texts are embedded together."""


@dataclass(frozen=True)
class Settings:
    """How the traces are judged: the same for every trace and metric of one evaluation."""

    metrics: tuple[Metric, ...]
    profile: str = "strict"
    evidence: str = "broadcast"
    answers: str | None = None
    answer_pattern: str | None = None
    regrade: bool = False
    gold: Mapping[str, str] | None = None
    embedder: str | Embedder = "default"
    cache: bool = True
    run: str = ""
    observe: Callable[[Context], Any] | None = None

    @property
    def embeds(self) -> bool:
        """Whether any metric needs an embedder."""
        return any("embedder" in chosen.needs for chosen in self.metrics)


def evaluate(
    traces: Iterable[Trace],
    metrics: Sequence[str | Metric] | None = None,
    *,
    profile: str | None = None,
    evidence: str = "broadcast",
    gold: str | Path | Mapping[str, str] | None = None,
    answers: str | None = None,
    answer_pattern: str | None = None,
    regrade: bool = False,
    embedder: str | Path | Embedder = "default",
    workers: int | None = None,
    cache: bool = True,
    run: str | None = None,
    observe: Callable[[Context], Any] | None = None,
) -> Scores:
    """Every metric on every trace.

    Parameters
    ----------
    traces: any iterable of Trace; what `read` gives is streamed.
    metrics: text forms or Metric constants; None: the default set.
    profile: ``strict`` (steps as nodes, ours) or ``paper`` (the literal reading), never mixed; None: the one
        that the metrics ask for, else ``strict``.
    evidence: the weakest evidence of a transfer that counts.
    gold: gold answers beside the traces: a JSONL or CSV file, or {trace id, task id or task text: answer}.
    answers: kind of answer: number, choice or text; None: inferred from each gold answer.
    answer_pattern: a regular expression with one group, for a form of answer of the user's own.
    regrade: grade from the texts even where the trace says whether it was correct.
    embedder: name, path or callable.
    workers: processes; None or 1: this one.
    cache: keep vectors on disk between runs.
    run: name of the run in the rows; None: the path that ``traces`` was read from.
    observe: also called with each trace's context; what it returns, but for None, is in ``Scores.observed``.

    Raises
    ------
    UsageError: an unknown metric, parameter, profile or evidence level; profiles mixed in one request.
    """
    settings = Settings(
        metrics=tuple(
            chosen for name in (DEFAULT if metrics is None else metrics) for chosen in metrics_of(name)
        ),
        evidence=evidence,
        answers=answers,
        answer_pattern=answer_pattern,
        regrade=regrade,
        gold=read_gold(gold) if isinstance(gold, str | Path) else gold,
        embedder=str(embedder) if isinstance(embedder, Path) else embedder,
        cache=cache,
        run=str(getattr(traces, "run", "")) if run is None else run,
        observe=observe,
    )
    settings = _checked(settings, profile)
    rows: list[Row] = []
    infos: list[TraceInfo] = []
    observed: list[Any] = []
    unmatched = 0
    warnings: dict[str, None] = {}
    for chunk in _chunks(traces, settings, workers):
        rows.extend(chunk.rows)
        observed.extend(chunk.observed)
        infos.extend(chunk.infos)
        unmatched += chunk.unmatched
        warnings.update(dict.fromkeys(chunk.warnings))
    if unmatched:
        warnings[f"{unmatched} of {len(infos)} traces found no gold answer in the one given"] = None
    if not infos:
        warnings["no traces to score"] = None
    return Scores(rows, infos, list(warnings), observed)


def _checked(settings: Settings, given: str | None) -> Settings:
    """The settings with the one profile that is given or asked for by metrics."""
    if settings.evidence not in EVIDENCE:
        raise UsageError(f"evidence {settings.evidence!r} is none of {', '.join(EVIDENCE)}")
    if settings.answers is not None and settings.answers not in KINDS:
        raise UsageError(f"kind of answer {settings.answers!r} is none of {', '.join(KINDS)}")
    if settings.answer_pattern is not None:
        read_answer("", pattern=settings.answer_pattern)
    asked = {str(chosen.bound["profile"]) for chosen in settings.metrics if "profile" in chosen.bound}
    profiles = asked | ({given} if given is not None else set()) or {"strict"}
    if len(profiles) > 1:
        raise UsageError(f"profiles are never mixed in one table, found {', '.join(sorted(profiles))}")
    if asked and any(
        "profile" in chosen.settings and "profile" not in chosen.bound for chosen in settings.metrics
    ):
        raise UsageError(
            f"profiles are never mixed in one table: use --profile {sorted(asked)[0]} for all metrics"
        )
    (profile,) = profiles
    if profile not in PROFILES:
        raise UsageError(f"profile {profile!r} is none of {', '.join(PROFILES)}")
    return Settings(**{**settings.__dict__, "profile": profile})


@dataclass
class _Chunk:
    rows: list[Row]
    infos: list[TraceInfo]
    unmatched: int
    warnings: list[str]
    observed: list[Any]


def _chunks(traces: Iterable[Trace], settings: Settings, workers: int | None) -> Iterator[_Chunk]:
    stream = iter(traces)
    batches = iter(lambda: list(islice(stream, CHUNK)), [])
    if workers is None or workers <= 1:
        judge = _Judge(settings)
        yield from map(judge, batches)
        return
    if any({"max_calls", "max_usd"} & set(chosen.bound) for chosen in settings.metrics):
        raise UsageError("a budget for a judge is kept by one process: use workers=1 with it")
    try:
        pickle.dumps(settings)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"these settings cannot be sent to {workers} processes ({error}): use workers=1"
        ) from None
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(settings,)) as pool:
        yield from pool.map(_judge_batch, batches)


_judge: Callable[[list[Trace]], _Chunk] | None = None


def _start(settings: Settings) -> None:
    global _judge
    _judge = _Judge(settings)


def _judge_batch(traces: list[Trace]) -> _Chunk:
    assert _judge is not None  # set by the pool's initializer
    return _judge(traces)


SHARED = 10_000
"""Distinct reasons and parts that rows share, so that a million rows stay small."""


class _Judge:
    """Scores batches of traces under one set of settings; holds the embedder."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.warnings: list[str] = []
        self._shared: dict[Any, Any] = {}
        self.embed: TextEmbedder | None = None
        self.embed_missing = ""
        if settings.embeds:
            try:
                self.embed = load_embedder(settings.embedder, cache=settings.cache)
            except (ModelError, ImportError) as error:
                if settings.embedder != "default":  # a name that the user gave
                    raise UsageError(f"embedder {settings.embedder!r}: {error}") from None
                self.embed_missing = f"no embedder: {error}"
                self.warnings.append(self.embed_missing)
        self._judging: dict[str, tuple[Judge, Decomposer]] = {}
        self.signatures = [_signature(chosen, settings, self.embed) for chosen in settings.metrics]

    def __call__(self, traces: list[Trace]) -> _Chunk:
        chunk = _Chunk([], [], 0, list(self.warnings), [])
        contexts = []
        for trace in traces:
            context, matched = self._context(trace)
            contexts.append(context)
            chunk.unmatched += not matched
        if self.embed is not None:
            self._embed_together(contexts, self.embed)
        for context in contexts:
            trace = context.trace
            chunk.infos.append(
                TraceInfo(self.settings.run, trace.id, trace.system, task_id(trace), seed(trace))
            )
            chunk.rows.extend(self._rows(context))
            if self.settings.observe is not None and not failed_calls(trace):
                try:
                    seen = self.settings.observe(context)
                    if seen is not None:
                        chunk.observed.append(seen)
                except Exception as error:  # what is beside the scores must not cost them
                    chunk.warnings.append(f"{trace.id}: could not be looked into: {error}")
            chunk.warnings.extend(f"{trace.id}: {warning}" for warning in trace.warnings)
        return chunk

    def _embed_together(self, contexts: Sequence[Context], embed: TextEmbedder) -> None:
        """Embed what metrics will ask for, and nothing else: a text takes longer to embed than to score."""
        with suppress(Exception):  # the metrics meet the same error and name it in their rows
            told = {chosen.embeds for chosen in self.settings.metrics} - {None}
            embed.prefetch([text for tell in told if tell for context in contexts for text in tell(context)])

    def _context(self, trace: Trace) -> tuple[Context, bool]:
        settings = self.settings
        graph = CollaborationGraph(trace, evidence=settings.evidence)
        trace, given = graph.trace, None
        if settings.gold is not None:
            keys = (trace.id, task_id(trace), trace.task)
            given = next((settings.gold[key] for key in keys if key in settings.gold), None)
            if given is not None:
                trace = replace(trace, gold=str(given))
        context = Context(
            trace=trace,
            graph=graph,
            profile=settings.profile,
            embed=self.embed,
            embed_missing=self.embed_missing or "no embedder was given",
            answers=settings.answers,
            answer_pattern=settings.answer_pattern,
            regrade=settings.regrade,
            gold_given=given is not None,
            judges=self._judges,
        )
        return context, settings.gold is None or given is not None

    def _judges(self, **options: Any) -> tuple[Judge, Decomposer]:
        """A judge and a decomposer, the same for equal options, so that a budget holds for all traces."""
        key = repr(sorted(options.items()))
        if key not in self._judging:
            cache = cache_folder() if self.settings.cache else None
            self._judging[key] = make_judges(**options, embed=self.embed, cache=cache)
        return self._judging[key]

    def _one(self, mapping: Mapping[str, Any]) -> Mapping[str, Any]:
        """The first mapping that was equal to this one, types included (1 and 1.0 are written unlike)."""
        if len(self._shared) > SHARED:
            self._shared.clear()
        key = tuple((name, type(value), value) for name, value in mapping.items())
        found: Mapping[str, Any] = self._shared.setdefault(key, mapping)
        return found

    def _rows(self, context: Context) -> Iterator[Row]:
        failed = failed_calls(context.trace)
        for chosen, signature in zip(self.settings.metrics, self.signatures, strict=True):
            try:
                score = (
                    Score.undefined(FAILED, parts=failed)
                    if failed
                    else chosen.compute(context, **chosen.values(self.settings.profile))
                )
            except UsageError:
                raise  # a parameter that no trace can be judged by
            except CounterpointError as error:
                score = Score.undefined(str(error))
            except Exception as error:  # a metric's bug must not cost the other rows
                message = " ".join(str(error).split())[:200]
                score = Score.undefined(f"the metric failed: {type(error).__name__}: {message}")
            yield Row(
                run=self.settings.run,
                trace=context.trace.id,
                system=context.trace.system,
                metric=str(chosen),
                value=score.value,
                reason=self._shared.setdefault(score.reason, score.reason),
                parts=self._one(score.parts),
                detail=self._one(score.detail),
                signature=signature,
            )


def _signature(chosen: Metric, settings: Settings, embed: TextEmbedder | None) -> dict[str, Any]:
    """All that could change the metric's number."""
    signature: dict[str, Any] = {
        "metric": chosen.name,
        "version": chosen.version,
        "profile": settings.profile,
    }
    values = chosen.values(settings.profile)
    signature.update(sorted(values.items()))
    if chosen.resources is not None:
        signature.update(chosen.resources(**values))
    if "evidence" in chosen.settings:
        signature["evidence"] = settings.evidence
    if "answers" in chosen.settings:
        signature["answers"] = settings.answers or "inferred"
        if settings.answer_pattern:
            signature["answer_pattern"] = settings.answer_pattern
        if settings.regrade:
            signature["regrade"] = True
    if "embedder" in chosen.needs:
        signature["embedder"] = embed.id if embed else "none"
    if "prices" in chosen.settings:
        signature["prices"] = f"genai-prices {version('genai-prices')}"
    return signature
