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
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["MIN_CHARACTERS", "Match", "find", "normal"]

MIN_CHARACTERS = 40
"""Shorter texts are too likely to recur by chance and are not looked for inside others."""

Match = tuple[int, int, int]
"""Start and end in the normalized haystack, and the needle's index."""

_WINDOW = 16
_SAMPLES = 8
_BLOCK = 1 << 20
_TABLE_BITS = 22
_MOST_OCCURRENCES = 64
_FACTORS = (np.uint32(0x9E3779B1), np.uint32(0x85EBCA77), np.uint32(0xC2B2AE3D), np.uint32(0x27D4EB2F))
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


def find(needles: Sequence[bytes], haystacks: Iterable[bytes]) -> list[list[Match]]:
    """For each haystack the needles found in it, by start; at most 64 occurrences of one needle.

    Both are normalized texts. Needles shorter than 16 bytes are never found. The same needle twice is found
    under its first index only.

    >>> find([b"abcdefghijklmnopqrst"], [b"-abcdefghijklmnopqrst-", b"nothing of the kind"])
    [[(1, 21, 0)], []]
    """
    shelves = _shelves(needles)
    if not shelves:
        return [[] for _ in haystacks]
    table = np.zeros(1 << _TABLE_BITS, dtype=bool)
    table[_slots(_hashes(b"".join(shelves))[::_WINDOW])] = True
    found: list[list[Match]] = []
    block: list[bytes] = []
    size = 0
    for haystack in haystacks:
        block.append(haystack)
        size += len(haystack)
        if size >= _BLOCK:
            found += _find_in_block(block, shelves, table)
            block, size = [], 0
    return found + _find_in_block(block, shelves, table)


# A shelf holds the needles filed under one window: offset of the window in them -> length -> text -> index.
_Shelf = dict[int, dict[int, dict[bytes, int]]]


def _shelves(needles: Sequence[bytes]) -> dict[bytes, _Shelf]:
    windows = [_sampled_windows(needle) for needle in needles]
    frequency = Counter(window for sampled in windows for window in sampled.values())
    shelves: dict[bytes, _Shelf] = {}
    for index, (needle, sampled) in enumerate(zip(needles, windows, strict=True)):
        if not sampled:
            continue
        offset = min(sampled, key=lambda at: (frequency[sampled[at]], at))
        lengths = shelves.setdefault(sampled[offset], {}).setdefault(offset, {})
        lengths.setdefault(len(needle), {}).setdefault(needle, index)
    return shelves


def _sampled_windows(needle: bytes) -> dict[int, bytes]:
    last = len(needle) - _WINDOW
    if last < 0:
        return {}
    offsets = {last * part // (_SAMPLES - 1) for part in range(_SAMPLES)}
    return {offset: needle[offset : offset + _WINDOW] for offset in offsets}


def _hashes(data: bytes) -> NDArray[np.uint32]:
    """Hash of every window of 16 bytes, by doubling: two neighboring halves make one whole."""
    values = np.frombuffer(data, dtype=np.uint8).astype(np.uint32)
    width = 1
    for factor in _FACTORS:
        values = values[:-width] * factor + values[width:] if len(values) > width else values[:0]
        width *= 2
    return values


def _slots(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return (hashes * np.uint32(0x9E3779B1)) >> np.uint32(32 - _TABLE_BITS)


def _find_in_block(
    block: list[bytes], shelves: dict[bytes, _Shelf], table: NDArray[np.bool_]
) -> list[list[Match]]:
    data = b"\0".join(block)
    found: list[list[Match]] = [[] for _ in block]
    hits = np.flatnonzero(table[_slots(_hashes(data))])
    if not len(hits):
        return found
    starts = np.cumsum([0, *(len(text) + 1 for text in block)])
    owners = np.searchsorted(starts, hits, side="right") - 1
    counts: Counter[tuple[int, int]] = Counter()
    for position, owner in zip(hits.tolist(), owners.tolist(), strict=True):
        shelf = shelves.get(data[position : position + _WINDOW])
        if shelf is None:
            continue
        base = int(starts[owner])
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
