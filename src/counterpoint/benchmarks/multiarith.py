"""MultiArith: arithmetic word problems of several steps whose answer is a whole number.

Files: the original list (``sQuestion``, ``lSolutions``: ``[39.0]``), which is divided into 420 training and
180 test questions here, by seed 0; or ``train`` and ``test`` files (``question``, ``final_ans``).

Differences from the paper
--------------------------
The published division into 420 and 180 is that of the hub's copy; of the original list ours differs from it.

Source: Roy and Roth. Solving General Arithmetic Word Problems. EMNLP 2015.
"""

from __future__ import annotations

from counterpoint.benchmarks._files import Record, content_id, load_split
from counterpoint.benchmarks._grading import grade, prompt, read_answer, whole_number
from counterpoint.contracts import Example

__all__ = ["grade", "load", "prompt", "read_answer"]


def load(path: str, split: str) -> list[Example]:
    """The examples of ``split`` (``test``, ``train``), in the order of the file."""
    return load_split(path, split, _example, hub=("ChilleD/MultiArith", None), divide=True)


def _example(record: Record) -> Example:
    task = record.text("sQuestion", "question")
    answer = record.first("lSolutions", "final_ans")
    if isinstance(answer, list):
        answer = answer[0] if len(answer) == 1 else answer
    return Example(content_id("multiarith", task), task, whole_number(answer, record.where))
