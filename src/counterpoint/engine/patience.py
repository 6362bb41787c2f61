"""When failures of calls end a run: some are about one question, others about every call to come.

Conventions
-----------
* An endpoint that says that it answers no further call (`ModelUnavailable`) ends a run at once.
* Failures without one reply in between end it after so many calls: by then all of them would fail.
* What an endpoint answers about one request (`RequestRefused`) is counted by questions, so that the many
  calls of one play are no outage; of access that is refused (`AccessRefused`) two questions are enough.
* A question that failed in an earlier sitting says nothing new when it is refused again: it is not counted.
"""

from __future__ import annotations

from collections.abc import Collection

from counterpoint.errors import AccessRefused, ModelError, ModelUnavailable, RequestRefused

__all__ = ["HOPELESS", "Patience"]

HOPELESS = 10
"""So many failed calls, or refused questions, in a row, or two a thread where that is more, end a run."""


class Patience:
    """Counts what fails in a row; its caller locks it."""

    def __init__(self, threads: int, failed_before: Collection[str]) -> None:
        self.most = max(HOPELESS, 2 * threads)
        self.failed_before = frozenset(failed_before)
        self.answered()

    def answered(self) -> None:
        """A reply came in: counting begins anew."""
        self.calls = 0
        self.refused: set[str] = set()
        self.forbidden: set[str] = set()

    def failed(self, question: str, error: ModelError) -> str:
        """Why the run ends after this failure of a call; empty where it goes on."""
        if isinstance(error, RequestRefused):
            return self._refused(question, error)
        self.calls += 1
        if isinstance(error, ModelUnavailable):
            return f"the endpoint answers no further call: {error}"
        if self.calls >= self.most:
            return f"{self.most} calls in a row were not answered, the last one: {error}"
        return ""

    def _refused(self, question: str, error: RequestRefused) -> str:
        if question in self.failed_before:
            return ""
        self.refused.add(question)
        if isinstance(error, AccessRefused):
            self.forbidden.add(question)
        if len(self.forbidden) > 1:
            return f"the endpoint answers no further call: {error}"
        if len(self.refused) >= self.most:
            return f"{self.most} questions in a row were refused, the last one: {error}"
        return ""
