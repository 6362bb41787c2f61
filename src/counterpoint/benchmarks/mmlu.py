"""MMLU, mathematics: elementary, high-school and college questions with four options, A to D.

Files: a CSV file a subject (``college_mathematics_test.csv``), in one folder or in ``test`` and ``dev``
folders; the original has no header and a letter as answer, a common copy a header and a number from 0; or
JSON records (``question``, ``choices``, ``answer`` as number from 0 or letter, ``subject``).

What counts
-----------
* Test questions are those of the three subjects: 378 + 270 + 100 = 748 in the published files, the number
  that GEMMAS states. Options stay text: "None" is one.
* Training questions are the three subjects' dev and val ones. There are 15 in the dev files, so where there
  are fewer than 40, other mathematical subjects fill up, drawn by seed 0; no test question ever does.

Source: Hendrycks et al. Measuring Massive Multitask Language Understanding. ICLR 2021 (arXiv:2009.03300).
"""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

from counterpoint.benchmarks._files import (
    HUB,
    Record,
    check_split,
    content_id,
    data_files,
    hub_records,
    numbered,
    records,
    split_of,
)
from counterpoint.benchmarks._grading import grade, prompt, read_answer, with_options
from counterpoint.contracts import Example
from counterpoint.errors import UsageError

__all__ = ["SUBJECTS", "grade", "load", "prompt", "read_answer"]

SUBJECTS = ("elementary_mathematics", "high_school_mathematics", "college_mathematics")
FURTHER = ("abstract_algebra", "high_school_statistics")
"""What training may draw from."""
TRAINING = 40

_LETTERS = "ABCD"
_SPLIT_WORD = re.compile(r"[_-](?:test|train|dev|val|validation)$")


def load(path: str, split: str) -> list[Example]:
    """The examples of ``split`` (``test``, ``train``), subject by subject."""
    check_split(split)
    test = _examples(path, "test", SUBJECTS)
    if split == "test":
        if not test:
            raise UsageError(f"benchmark data {path!r} has no test questions of MMLU's {', '.join(SUBJECTS)}")
        return test
    train = _examples(path, "train", SUBJECTS)
    if len(train) < TRAINING:
        further = [*_examples(path, "train", FURTHER), *_examples(path, "test", FURTHER)]
        missing = min(TRAINING - len(train), len(further))
        train += random.Random(0).sample(sorted(further, key=lambda one: one.id), missing)
    if not train:
        raise UsageError(f"benchmark data {path!r} has no training questions: the subjects' dev files")
    held_out = {example.id for example in test}
    return [example for example in train if example.id not in held_out]


def _examples(path: str, split: str, subjects: tuple[str, ...]) -> list[Example]:
    found = []
    for subject in subjects:
        if path == HUB:
            rows = hub_records("cais/mmlu", subject, split)
        else:
            rows = [row for file in data_files(path, "**/*") for row in _of(file, split, subject)]
        found += [_example(row) for row in rows]
    return numbered(found)


def _of(file: Path, split: str, subject: str) -> list[Record]:
    """The records of a file that are of ``split`` and ``subject``; its name says the split, or its folder."""
    own = split_of(file) or split_of(file.parent) or "test"
    if own != split:
        return []
    if file.suffix == ".csv":
        return _rows(file) if _SPLIT_WORD.sub("", file.stem) == subject else []
    return [record for record in records(file) if record.fields.get("subject") == subject]


def _rows(file: Path) -> list[Record]:
    """The rows of a CSV file with or without a header."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = list(csv.reader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
    found = []
    for number, row in enumerate(rows, 1):
        if not row or (number == 1 and row[0].strip() == "question"):
            continue
        if len(row) != 6:
            raise UsageError(f"{file}: line {number} has {len(row)} columns: question, 4 options, answer")
        fields = {"question": row[0], "choices": row[1:5], "answer": row[5]}
        found.append(Record(fields, f"{file}: row {number}"))
    return found


def _example(record: Record) -> Example:
    choices, answer = record.first("choices"), str(record.first("answer")).strip().upper()
    if not isinstance(choices, list) or len(choices) != 4:
        raise UsageError(f"{record.where}: the choices are no list of 4 texts")
    gold = _LETTERS[int(answer)] if answer in {"0", "1", "2", "3"} else answer
    if gold not in tuple(_LETTERS):
        raise UsageError(f"{record.where}: the answer {answer[:60]!r} is no letter A to D, nor 0 to 3")
    options = {letter: " ".join(str(text).split()) for letter, text in zip(_LETTERS, choices, strict=True)}
    task = with_options(record.text("question"), options)
    return Example(content_id("mmlu", task), task, gold, "choice", options)
