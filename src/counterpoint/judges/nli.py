"""An entailment model as a judge: ``p(x -> y)`` is the probability that y entails x. Needs the extra ``hub``.

What counts
-----------
* Preservation and support: the probability of entailment, text first, claim second. Contradiction: that of
  contradiction.
* Stance: half of 1 + P(entailment) - P(contradiction) of the claim by the passage it stands in: 1 supports,
  .5 is neutral, 0 rejects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from counterpoint.contracts import Question, Verdict
from counterpoint.errors import MissingExtra, ModelError

__all__ = ["Entailment"]

DEFAULT = "cross-encoder/nli-deberta-v3-xsmall"

Predict = Callable[[list[tuple[str, str]]], Any]
"""Pairs to (n, 3) probabilities."""


class Entailment:
    """A natural-language-inference cross-encoder, by its name on the hub or its folder.

    ``predict`` and ``labels`` stand in for the model: probabilities of pairs, and which column is which.
    """

    VERSION = "nli/1"

    def __init__(
        self,
        model: str = "",
        *,
        predict: Predict | None = None,
        labels: Mapping[int, str] | None = None,
    ) -> None:
        self._name = model or DEFAULT
        self._given = (predict, labels or {0: "contradiction", 1: "entailment", 2: "neutral"})
        self.id = f"{self.VERSION}, {self._name}"

    def __call__(self, question: Question, pairs: Sequence[tuple[str, str]], /) -> list[Verdict]:
        """A verdict a pair; undefined where the model gives no probability."""
        if not pairs:
            return []
        predict, labels = self._given if self._given[0] else _load(self._name)
        column = {label.casefold(): number for number, label in labels.items()}
        if not {"entailment", "contradiction"} <= set(column):
            raise ModelError(
                f"{self._name} labels {', '.join(labels.values())}: not an entailment model "
                "(entailment, neutral, contradiction)"
            )
        assert predict is not None
        found = np.asarray(predict([(text, claim) for text, claim in pairs]), dtype=np.float64)
        if found.ndim != 2 or len(found) != len(pairs):
            raise ModelError(f"{self._name} gave an array of shape {found.shape} for {len(pairs)} pairs")
        entails, denies = found[:, column["entailment"]], found[:, column["contradiction"]]
        scores = {"contradiction": denies, "stance": (1 + entails - denies) / 2}.get(question, entails)
        return [
            Verdict(float(score))
            if 0 <= score <= 1
            else Verdict(None, f"{self._name} gave {score}, no probability")
            for score in scores
        ]


@lru_cache(maxsize=1)
def _load(name: str) -> tuple[Predict, Mapping[int, str]]:
    try:
        from sentence_transformers import CrossEncoder
    except ImportError:
        raise MissingExtra("judge=nli", "hub") from None
    try:
        model = CrossEncoder(name)
    except (OSError, ValueError) as error:
        problem = (str(error).splitlines() or [""])[0]
        raise ModelError(f"the entailment model {name} could not be loaded: {problem}") from None

    def predict(pairs: list[tuple[str, str]]) -> Any:
        return model.predict(pairs, apply_softmax=True, show_progress_bar=False)

    return predict, model.config.id2label
