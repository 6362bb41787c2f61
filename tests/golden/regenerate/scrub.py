"""Takes out of recorded files what differs from machine to machine and from run to run.

Ids are numbered in the order of their first appearance, times become a millisecond apart in their old order,
durations become 1. So two recordings of one framework are the same bytes, and a difference after an update
says what the framework changed. One `Scrubber` sees all files of a run, for they name the same ids.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)
NEAR = timedelta(days=2)
"""A number is a time of this run only if it is this close to now."""

ID = re.compile(
    r"(?<=_id\": \")(?:[0-9A-Za-z+/]{11}=|[0-9A-Za-z+/]{22}==)|"
    r"(?<![0-9a-f])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?=\d*[a-f])(?:[0-9a-f]{32}|[0-9a-f]{24}|[0-9a-f]{16}))(?![0-9a-f])"
    r"|(?<![0-9A-Za-z])(?=[A-Za-z]*(?:\d|[A-Z]{2}))(?=[0-9A-Z]*[a-z])[0-9A-Za-z]{22}(?![0-9A-Za-z])"
    r"|(?<=object at )0x[0-9a-f]+|(?<!\d)(?:\d{38,39}|1[34]\d{13})(?!\d)"
)
STACK = re.compile(
    r"(Traceback \(most recent call last\):(?:\\n| ))"
    r'(?:[^"\\]|\\.)*?(\\n[\w.]+: [^"\\]*(?:\\n)?")'
)
"""A Python stack in JSON text: between its head and its last line stand a framework's code and paths."""
TIME = re.compile(
    r"\b\d{8}T\d{12}(?=Z)"
    r"|(?<![\d.])(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?|1[78]\d{8}(?:\.\d+|\d{9}|\d{6}|\d{3})?)"
    r"(?![\d.])"
)
DURATION = re.compile(
    r"""(\\*["'][a-z_.]*(?:duration|latency|elapsed|time_to_first|total_time|working)[a-z_.]*\\*["']: ?)"""
    r"[\d.]+(?:e-\d+)?"
)


class Scrubber:
    """Replaces ids, times, durations and the given words, alike in all files."""

    def __init__(self, files: Iterable[str], words: Mapping[str, str]) -> None:
        self._words = words
        self._ids: dict[str, str] = {}
        now = datetime.now(UTC)
        seen = {time for text in files for time in map(parsed, TIME.findall(text)) if abs(time - now) < NEAR}
        self._times = {time: START + timedelta(milliseconds=rank) for rank, time in enumerate(sorted(seen))}

    def clean(self, text: str) -> str:
        """``text`` as it is the same in every recording."""
        text = STACK.sub(r"\1...\2", text)
        for word, replacement in self._words.items():
            text = text.replace(word, replacement)
        text = TIME.sub(lambda match: self._time(match[0]), text)
        return DURATION.sub(r"\g<1>1", ID.sub(lambda match: self._id(match[0]), text))

    def _id(self, old: str) -> str:
        if old.startswith("0x"):
            return "0x0"  # Where an object lay: the same place serves several.
        if old.endswith("="):
            size = 16 if old.endswith("==") else 8
            number = len(self._ids) + 1
            return self._ids.setdefault(old, base64.b64encode(number.to_bytes(size)).decode())
        if old not in self._ids:
            first = "1" if old.isdigit() else "c"
            digits = (
                f"{first}{len(self._ids) + 1:0{len(old.replace('-', '')) - 1}{'d' if old.isdigit() else 'x'}}"
            )
            for place in (index for index, sign in enumerate(old) if sign == "-"):
                digits = f"{digits[:place]}-{digits[place:]}"
            self._ids[old] = digits
        return self._ids[old]

    def _time(self, old: str) -> str:
        new = self._times.get(parsed(old))
        return old if new is None else written_like(old, new)


def parsed(text: str) -> datetime:
    """The time that ``text`` writes, whole microseconds; the epoch where it writes none."""
    try:
        if "T" in text[:9]:
            return datetime.strptime(text, "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
        if "-" in text:
            head, _, fraction = text.partition(".")
            whole = datetime.fromisoformat(head).replace(tzinfo=UTC)
            return whole + timedelta(microseconds=int(f"{fraction[:6]:0<6}"))
        whole_digits, _, fraction = text.partition(".")
        digits = f"{whole_digits}{fraction}"
        microseconds = int(f"{digits[:16]:0<16}")
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def written_like(old: str, new: datetime) -> str:
    """``new`` in the notation of ``old``, with as many digits; seconds have six decimals.

    >>> written_like("1796049180.6412", START)
    '1767225600.000000'
    >>> written_like("20261130T174049123456", START)
    '20260101T000000000000'
    """
    if "T" in old[:9]:
        return new.strftime("%Y%m%dT%H%M%S%f")
    if "-" in old:
        text = new.isoformat(sep=old[10], timespec="microseconds").removesuffix("+00:00")
    else:
        if "." in old:
            return f"{new.timestamp():.6f}"
        text = f"{int(new.timestamp())}{new.microsecond:06d}"
    return f"{text:0<{len(old)}}"[: len(old)]
