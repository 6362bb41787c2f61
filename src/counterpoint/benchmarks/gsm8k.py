"""GSM8K: grade-school word problems whose answer is a whole number.

Files: OpenAI's JSON lines (``question``; ``answer``, a solution that ends in ``#### 18``), under any name
that says test or train, or ``gsm8k.jsonl`` for the test split as AgentPrune has it; also records whose
``answer`` is the bare number.

Source: Cobbe et al. Training Verifiers to Solve Math Word Problems. 2021 (arXiv:2110.14168).
"""

from __future__ import annotations

from counterpoint.benchmarks._files import Record, content_id, load_split
from counterpoint.benchmarks._grading import grade, prompt, read_answer, whole_number
from counterpoint.contracts import Example

__all__ = ["grade", "load", "prompt", "read_answer"]


def load(path: str, split: str) -> list[Example]:
    """The examples of ``split`` (``test``, ``train``), in the order of the file."""
    return load_split(path, split, _example, hub=("openai/gsm8k", "main"))


def _example(record: Record) -> Example:
    task = record.text("question")
    answer = str(record.first("answer")).rpartition("####")[2]
    return Example(content_id("gsm8k", task), task, whole_number(answer.strip(), record.where))
