"""Every error that a user can cause, one line each: what, where, what was found, what to do.

CounterpointError
├── UsageError (ValueError)       an argument or option that cannot be used as given
├── GraphError (ValueError)       an array that is not the graph it should be: a cycle, a wrong shape
├── TraceError                    a record or file that could not be read; the rest of the input still is
├── ModelError (RuntimeError)     an embedder, judge or chat model that cannot do its work
│   ├── ModelUnavailable          an endpoint that will answer no further call either
│   └── RequestRefused            an endpoint's answer about one request: others may be answered
│       └── AccessRefused         the same, unless it is about every request: HTTP 403 does not say
├── BudgetExceeded                a further model call would go beyond what the user wants to spend
└── MissingExtra (ImportError)    a feature whose optional packages are not installed; names the extra
"""

from __future__ import annotations

__all__ = [
    "AccessRefused",
    "BudgetExceeded",
    "CounterpointError",
    "GraphError",
    "MissingExtra",
    "ModelError",
    "ModelUnavailable",
    "RequestRefused",
    "TraceError",
    "UsageError",
]


class CounterpointError(Exception):
    """Base of all errors of this package: catching it catches all that a user can cause."""


class UsageError(CounterpointError, ValueError):
    """An argument, option or metric text that cannot be used as given."""


class GraphError(CounterpointError, ValueError):
    """An array that is not the graph it should be: a cycle, a wrong shape, an index out of range."""


class ModelError(CounterpointError, RuntimeError):
    """An embedder, judge or chat model that is missing, not what it should be, or of no use."""


class ModelUnavailable(ModelError):
    """An endpoint that will answer no further call: key refused, nothing left to spend, a long pause."""


class RequestRefused(ModelError):
    """An endpoint's answer about one request: too long, filtered, not as it should be."""


class AccessRefused(RequestRefused):
    """A request that is forbidden: it alone (a firewall in between), or every one (a key without rights)."""


class BudgetExceeded(CounterpointError):
    """A further model call would go beyond what the user wants to spend; raised in place of that call."""


class MissingExtra(CounterpointError, ImportError):
    """A feature whose optional packages are not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed: pip install 'counterpoint[{extra}]'")
        self.extra = extra


class TraceError(CounterpointError):
    """A file or record that could not be read.

    Adapters *yield* it in place of a trace, so that the records after it are still read;
    ``read(..., on_error="raise")`` raises it.
    """

    def __init__(self, message: str, *, source: str = "", record: int | None = None) -> None:
        self.message = message
        self.source = source
        self.record = record
        """Number of the record in its file, from 1."""
        where = [source] if source else []
        if record is not None:
            where.append(f"record {record}")
        super().__init__(": ".join([*where, message]))
