"""SVAMP: one-step word problems with what distracts from the step; the answer is a whole number.

Files: the original list of 1,000 (``ID``, ``Body``, ``Question``, ``Answer``: ``51.0``), which is divided
into 700 training and 300 test questions: by a list of the test ids beside it (``test*_ids.json``), else by
seed 0; or ``train`` and ``test`` files with the same fields, the answer also as text.

Source: Patel et al. Are NLP Models Really Able to Solve Simple Math Word Problems? NAACL 2021
(arXiv:2103.07191).
"""

from __future__ import annotations

from counterpoint.benchmarks._files import Record, content_id, load_split
from counterpoint.benchmarks._grading import grade, prompt, read_answer, whole_number
from counterpoint.contracts import Example

__all__ = ["grade", "load", "prompt", "read_answer"]


def load(path: str, split: str) -> list[Example]:
    """The examples of ``split`` (``test``, ``train``), in the order of the file."""
    return load_split(path, split, _example, hub=("ChilleD/SVAMP", None), divide=True)


def _example(record: Record) -> Example:
    body = str(record.first("Body", "body")).strip()
    if body and body[-1].isalnum():
        body += "."
    task = f"{body} {record.text('Question', 'question')}".strip()
    name = record.fields.get("ID") or content_id("svamp", task)
    return Example(str(name), task, whole_number(record.first("Answer", "answer"), record.where))
