"""The files of a benchmark: which of them holds a split, and what stands in it, whatever its format.

A record is a JSON object or a row of a CSV file with a header; a JSON file may hold a list of them or one a
line, whatever its suffix says.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from counterpoint.contracts import Example
from counterpoint.errors import MissingExtra, ModelError, UsageError
from counterpoint.json_text import parse_json

__all__ = [
    "Record",
    "check_split",
    "content_id",
    "data_files",
    "hub_records",
    "load_split",
    "numbered",
    "records",
    "split_of",
]

HUB = "hub"
"""The path that stands for the hub's copy."""
TEST_SHARE = 0.3
"""Of the splits that are made here: 180 of 600 (MultiArith), 300 of 1,000 (SVAMP)."""

_SPLITS = {"test": ("test",), "train": ("train", "validation", "valid", "val", "dev")}
_NAMES = {name: split for split, names in _SPLITS.items() for name in names}
_WORD = re.compile(r"[a-z]+")
_Source: TypeAlias = "Callable[[], list[Record]]"
_SUFFIXES = (".json", ".jsonl", ".csv")


@dataclass(frozen=True)
class Record:
    """One record, and where it stands, for messages."""

    fields: Mapping[str, Any]
    where: str

    def first(self, *names: str) -> Any:
        """The value of the first of these fields that there is; a UsageError where there is none."""
        for name in names:
            if self.fields.get(name) is not None:
                return self.fields[name]
        for name in names:
            if name in self.fields:
                raise UsageError(f"{self.where}: the field {name!r} is empty")
        found = ", ".join(map(str, list(self.fields)[:8])) or "nothing"
        raise UsageError(f"{self.where}: no field {' or '.join(map(repr, names))} (found: {found})")

    def text(self, *names: str) -> str:
        """The first of these fields as text; a UsageError where there is none in it."""
        text = str(self.first(*names)).strip()
        if not text:
            raise UsageError(f"{self.where}: the field {names[0]!r} is empty")
        return text


def load_split(
    path: str,
    split: str,
    make: Callable[[Record], Example],
    *,
    hub: tuple[str, str | None],
    divide: bool = False,
) -> list[Example]:
    """The examples of ``split``, none of them in both splits.

    Parameters
    ----------
    path : a file, a folder, or ``hub``.
    make : a record to its example; ids need not be unique yet.
    hub : name and configuration of the hub's copy.
    divide : a file that names no split holds both; it is divided, by the ids of a file ``test*_ids.json``
        beside it, else by seed 0. Otherwise it holds the test split.
    """
    check_split(split)
    found, whole = _hub_sources(hub) if path == HUB else _file_sources(data_files(path))
    if found[split]:
        examples = numbered(make(record) for source in found[split] for record in source())
    elif whole and divide:
        examples = numbered(make(record) for source in whole for record in source())
        return _divided(examples, split, _test_ids(path))
    elif whole and split == "test":
        examples = numbered(make(record) for source in whole for record in source())
    else:
        raise UsageError(f"benchmark data {path!r} has no {split} split: a file whose name says {split}")
    if split == "test" or not (found["test"] or whole):
        return examples
    held_out = {example.id for example in load_split(path, "test", make, hub=hub, divide=divide)}
    return [example for example in examples if example.id not in held_out]


def check_split(split: str) -> None:
    """Raises UsageError unless ``split`` is test or train."""
    if split not in _SPLITS:
        raise UsageError(f"no split {split!r}: it is {' or '.join(_SPLITS)}")


def data_files(path: str, pattern: str = "*") -> list[Path]:
    """The file ``path``, or the data files in the folder ``path``, in order of their names."""
    place = Path(path)
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise UsageError(f"no benchmark data at {path!r}: name a file or folder of it, or {HUB!r}")
    files = sorted(file for file in place.glob(pattern) if file.suffix in _SUFFIXES)
    if not files:
        raise UsageError(f"no benchmark data in {path!r}: no {', '.join(_SUFFIXES)} file")
    return files


def split_of(file: Path) -> str | None:
    """The split that a file's name says, word by word; ``ids`` for a list of ids, None for neither.

    >>> split_of(Path("algebra_dev.csv")), split_of(Path("test300_ids.json")), split_of(Path("contest.json"))
    ('train', 'ids', None)
    """
    words = _WORD.findall(file.stem.lower())
    if words and words[-1] == "ids":
        return "ids"
    return next((_NAMES[word] for word in words if word in _NAMES), None)


def records(file: Path) -> list[Record]:
    """Every record of a JSON, JSON lines or CSV file; a UsageError names what cannot be read."""
    rows = _csv(file) if file.suffix == ".csv" else _json(file)
    found = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise UsageError(f"{file}: record {number} is no object but {type(row).__name__}")
        found.append(Record(row, f"{file}: record {number}"))
    return found


def hub_records(name: str, configuration: str | None, split: str) -> list[Record]:
    """The records of a data set on the hub; its smaller splits where it has no ``train``."""
    try:
        library: Any = importlib.import_module("datasets")
    except ImportError:
        raise MissingExtra(f"benchmark data {name!r} of the hub", "hub") from None
    where = f"{name} ({configuration or 'default'}) of the hub"
    try:
        available = library.get_dataset_split_names(name, configuration)
        chosen = next((one for one in _SPLITS[split] if one in available), None)
        rows = [] if chosen is None else library.load_dataset(name, configuration, split=chosen)
    except Exception as error:  # network, hub and file format each raise their own
        raise ModelError(f"{where} cannot be loaded: {' '.join(str(error).split())[:300]}") from None
    return [Record(dict(row), f"{where}: record {number}") for number, row in enumerate(rows, 1)]


def content_id(name: str, task: str) -> str:
    """An id by what is asked, spaces and case apart: the same in every variant of a data set's files."""
    words = " ".join(task.split()).casefold()
    return f"{name}-{hashlib.sha256(words.encode('utf-8', 'replace')).hexdigest()[:12]}"


def numbered(examples: Iterable[Example]) -> list[Example]:
    """The examples with unique ids: the second of an id becomes ``ID~2``."""
    counts: Counter[str] = Counter()
    unique = []
    for example in examples:
        counts[example.id] += 1
        count = counts[example.id]
        unique.append(example if count == 1 else replace(example, id=f"{example.id}~{count}"))
    return unique


def _hub_sources(hub: tuple[str, str | None]) -> tuple[dict[str, list[_Source]], list[_Source]]:
    return {split: [partial(hub_records, *hub, split)] for split in _SPLITS}, []


def _file_sources(files: list[Path]) -> tuple[dict[str, list[_Source]], list[_Source]]:
    """One file a split, the first by the order of the names that say it; and the one that says none."""
    whole = [file for file in files if split_of(file) is None]
    if len(whole) > 1:
        raise UsageError(
            f"several files in {str(whole[0].parent)!r} may be the data "
            f"({', '.join(file.name for file in whole[:4])}): name one"
        )
    named = {split: [file for file in files if split_of(file) == split] for split in _SPLITS}
    found: dict[str, list[_Source]] = {
        split: [partial(records, min(own, key=_rank))] if own else [] for split, own in named.items()
    }
    return found, [partial(records, file) for file in whole]


def _rank(file: Path) -> tuple[int, str]:
    words = _WORD.findall(file.stem.lower())
    order = [name for names in _SPLITS.values() for name in names]
    return min(order.index(word) for word in words if word in order), file.name


def _test_ids(path: str) -> set[str] | None:
    place = Path(path)
    folder = place if place.is_dir() else place.parent
    files = [file for file in sorted(folder.glob("test*ids.json")) if split_of(file) == "ids"]
    if not files:
        return None
    ids = _json(files[0])
    if not all(isinstance(one, str) for one in ids):
        raise UsageError(f"{files[0]}: a list of ids of test questions is a JSON list of texts")
    return set(ids)


def _divided(examples: list[Example], split: str, test_ids: set[str] | None) -> list[Example]:
    """The test or the training part: by known ids, else by seed 0; what stands twice stays together."""
    if test_ids is None:
        test_ids = _drawn(examples)
    return [example for example in examples if (example.id in test_ids) == (split == "test")]


def _drawn(examples: list[Example]) -> set[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for example in examples:
        groups[example.id.partition("~")[0]].append(example.id)
    size, drawn = round(len(examples) * TEST_SHARE), set[str]()
    # Sorted first: the same questions are drawn whatever the order of the file.
    for name in random.Random(0).sample(sorted(groups), len(groups)):
        if len(drawn) + len(groups[name]) <= size:
            drawn.update(groups[name])
    return drawn


def _json(file: Path) -> list[Any]:
    content = _content(file)
    try:
        whole, _ = parse_json(content)
    except ValueError as error:
        lines = [line for line in content.splitlines() if line.strip()]
        if not lines:
            raise UsageError(f"{file} is empty") from None
        if len(lines) < 2:
            raise UsageError(f"{file} is no JSON: {error}") from None
        return [_line(line, f"{file}: line {number}") for number, line in enumerate(lines, 1)]
    return whole if isinstance(whole, list) else [whole]


def _line(line: str, where: str) -> Any:
    try:
        return parse_json(line)[0]
    except ValueError as error:
        raise UsageError(f"{where} is no JSON: {error}") from None


def _csv(file: Path) -> list[dict[str, str]]:
    lines = _content(file).splitlines(keepends=True)
    return list(csv.DictReader(lines, restkey="", restval=""))


def _content(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
