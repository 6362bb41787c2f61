"""AQuA: algebra questions with five options, A to E.

Files: DeepMind's JSON lines (``question``; ``options``, each ``A)21``; ``correct``, a letter), also under the
name ``.json`` and also as a list; or records with ``label`` for ``correct`` and options ``(A)21``, as AGIEval
has them. Training questions are those of ``train``, else those of ``dev``.

Source: Ling et al. Program Induction by Rationale Generation. ACL 2017 (arXiv:1705.04146).
"""

from __future__ import annotations

import re

from counterpoint.benchmarks._files import Record, content_id, load_split
from counterpoint.benchmarks._grading import grade, prompt, read_answer, with_options
from counterpoint.contracts import Example
from counterpoint.errors import UsageError

__all__ = ["grade", "load", "prompt", "read_answer"]

_LABEL = re.compile(r"\s*\(?([A-J])\s*[).:]\s*")


def load(path: str, split: str) -> list[Example]:
    """The examples of ``split`` (``test``, ``train``), in the order of the file."""
    return load_split(path, split, _example, hub=("deepmind/aqua_rat", "raw"))


def _example(record: Record) -> Example:
    options = _options(record)
    gold = str(record.first("correct", "label", "answer")).strip().upper()
    if gold not in options:
        raise UsageError(f"{record.where}: the answer {gold[:60]!r} is none of {', '.join(options)}")
    task = with_options(record.text("question"), options)
    return Example(content_id("aqua", task), task, gold, "choice", options)


def _options(record: Record) -> dict[str, str]:
    """Letter to text; labels before the texts say the letters, else their order does."""
    texts = record.first("options", "choices")
    if not isinstance(texts, list) or not 2 <= len(texts) <= 10:
        raise UsageError(f"{record.where}: the options are no list of 2 to 10 texts")
    letters = "ABCDEFGHIJ"[: len(texts)]
    labels = [_LABEL.match(str(text)) for text in texts]
    while [label[1] for label in labels if label] == list(letters):  # some stand twice: "A)A)59"
        texts = [str(text)[label.end() :] for text, label in zip(texts, labels, strict=True) if label]
        labels = [_LABEL.match(text) for text in texts]
    return {letter: " ".join(str(text).split()) for letter, text in zip(letters, texts, strict=True)}
