"""Which of many known texts stand in which of many other texts, in time near-linear in their sizes.

Texts are compared after `normal`: case, white space, punctuation, Markdown marks and JSON escapes do not
count, so that an output which was pasted into a prompt, quoted or JSON-encoded is still found.

Each needle is filed under its rarest window of 16 bytes; all windows of the haystacks are hashed at once
(Rabin and Karp's idea, as array arithmetic) and looked up in a bit table, and the few that hit are
compared byte by byte. A needle with no window of its own costs one comparison a *length*, not one a needle.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

__all__ = ["MIN_CHARACTERS", "Match", "Needles", "normal"]

MIN_CHARACTERS = 40
"""Shorter texts are too likely to recur by chance and are not looked for inside others."""

Match = tuple[int, int, int]
"""Start and end in the normalized haystack, and the needle's index."""

_WINDOW = 16
_SAMPLES = 4
_BLOCK = 1 << 17
_TABLE_BITS = 20
_MOST_OCCURRENCES = 64
_MOST_HITS = 256
"""Places of one window in one haystack that are looked at: a model caught in a loop repeats it for ever."""
_VARIED = 6
"""A window of fewer different bytes recurs too often to file a needle under, if there is a better one."""
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrtbf])")
_LOWER = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
_NOISE = bytes(code for code in range(128) if not chr(code).isalnum())


def normal(text: str) -> bytes:
    r"""``text`` as the lower-case letters and digits in it, UTF-8; other characters beyond ASCII stay.

    >>> normal('**Done**: "A\\nB"')
    b'doneab'
    """
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).casefold()
    return text.encode("utf-8", "replace").translate(_LOWER, _NOISE)


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else " "


class Needles:
    """Texts to be looked for in others, filed for it once.

    >>> Needles([b"abcdefghijklmnopqrst"]).find([b"-abcdefghijklmnopqrst-", b"nothing of the kind"])
    [[(1, 21, 0)], []]
    """

    def __init__(self, needles: Sequence[bytes]) -> None:
        """Takes normalized texts; those under 16 bytes are never found, a repeated one by its first index."""
        self._shelves = _shelves(needles)
        self._table = np.zeros(1 << _TABLE_BITS if self._shelves else 1, dtype=bool)
        if self._shelves:
            self._table[_slots(b"".join(self._shelves), 0, _WINDOW)] = True

    def find(self, haystacks: Iterable[bytes]) -> list[list[Match]]:
        """The needles in each haystack, a normalized text, by start; at most 64 occurrences of each."""
        if not self._shelves:
            return [[] for _ in haystacks]
        found: list[list[Match]] = []
        block: list[bytes] = []
        size = 0
        for haystack in haystacks:
            block.append(haystack)
            size += len(haystack)
            if size >= _BLOCK:
                found += _find_in_block(block, self._shelves, self._table)
                block, size = [], 0
        return found + _find_in_block(block, self._shelves, self._table)


# A shelf holds the needles filed under one window: offset of the window in them -> length -> text -> index.
_Shelf = dict[int, dict[int, dict[bytes, int]]]


def _shelves(needles: Sequence[bytes]) -> dict[bytes, _Shelf]:
    windows = [_sampled_windows(needle) for needle in needles]
    frequency = Counter(window for sampled in windows for window in sampled)
    shelves: dict[bytes, _Shelf] = {}
    for index, (needle, sampled) in enumerate(zip(needles, windows, strict=True)):
        if not sampled:
            continue
        counts = [frequency[window] for window in sampled]
        place = counts.index(min(counts))
        if len(set(sampled[place])) < _VARIED:
            place = max(range(_SAMPLES), key=lambda at: len(set(sampled[at])))
        offset = (len(needle) - _WINDOW) * place // (_SAMPLES - 1)
        lengths = shelves.setdefault(sampled[place], {}).setdefault(offset, {})
        lengths.setdefault(len(needle), {}).setdefault(needle, index)
    return shelves


def _sampled_windows(needle: bytes) -> list[bytes]:
    """Windows at even distances, the first and the last among them; none of a needle that is too short."""
    last = len(needle) - _WINDOW
    if last < 0:
        return []
    return [needle[(offset := last * part // (_SAMPLES - 1)) : offset + _WINDOW] for part in range(_SAMPLES)]


def _slots(data: bytes, start: int, step: int) -> NDArray[np.uint64]:
    """Where in the bit table the windows at ``start``, ``start + step``, ... belong; ``step`` is 8 or 16.

    A window is hashed as two numbers of 8 bytes, read in place.
    """
    words: NDArray[np.uint64] = np.frombuffer(data, dtype="<u8", offset=start, count=(len(data) - start) // 8)
    hashes: NDArray[np.uint64] = (words[:-1] * _FACTORS[0] + words[1:] * _FACTORS[1])[:: step // 8]
    return hashes >> np.uint64(64 - _TABLE_BITS)


def _hits(data: bytes, table: NDArray[np.bool_]) -> list[int]:
    """Positions of the windows that may be some needle's, in order."""
    found = [
        np.flatnonzero(table[_slots(data, start, 8)]) * 8 + start
        for start in range(min(8, len(data) - _WINDOW + 1))
    ]
    return np.sort(np.concatenate(found)).tolist() if found else []


def _find_in_block(
    block: list[bytes], shelves: dict[bytes, _Shelf], table: NDArray[np.bool_]
) -> list[list[Match]]:
    data = b"\0".join(block)
    found: list[list[Match]] = [[] for _ in block]
    starts = list(accumulate((len(text) + 1 for text in block), initial=0))
    counts: dict[tuple[int, int], int] = defaultdict(int)
    looked: dict[tuple[int, bytes], int] = defaultdict(int)
    for position in _hits(data, table):
        window = data[position : position + _WINDOW]
        shelf = shelves.get(window)
        if shelf is None:
            continue
        owner = bisect_right(starts, position) - 1
        looked[owner, window] += 1
        if looked[owner, window] > _MOST_HITS:
            continue
        base = starts[owner]
        for offset, lengths in shelf.items():
            start = position - offset
            if start < base:
                continue
            for length, texts in lengths.items():
                index = texts.get(data[start : start + length])
                if index is not None and counts[owner, index] < _MOST_OCCURRENCES:
                    counts[owner, index] += 1
                    found[owner].append((start - base, start - base + length, index))
    for matches in found:
        matches.sort()
    return found
