"""The first JSON value of a file is told from its head alone."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.adapters._source import mentions, opening
from counterpoint.contracts import Source


def source(head: bytes, tail: bytes = b"") -> Source:
    return Source("x", head, tail, lambda: io.BytesIO(head))


@pytest.mark.parametrize(
    ("head", "value", "lines"),
    [
        (b'{"a": 1}', {"a": 1}, True),
        (b'{"a": 1}\n{"b": 2}\n', {"a": 1}, True),
        (b'\xef\xbb\xbf \n[1]', [1], True),
        (b'{\n "a": [1, {"b": 2}, {"c": "x, [', {"a": [1, {"b": 2}, {}]}, False),
        (b'[{"a": "\\"}],", "b": "c', [{"a": '"}],'}], True),
        (b'{"a": "b\\', {}, True),
        (b'[[1, 2], [3', [[1, 2], []], True),
        (b'[\n{"a": 1},\n{"b": 2}\n]', [{"a": 1}, {"b": 2}], False),
        (b'{"a": [\n[1]\n]}', {"a": [[1]]}, False),
        (b'a log\n{"b": 2}\n', {"b": 2}, True),
        (b'{"a": [1,\n{"b": 2}\n', {"b": 2}, True),
        (b"a log", None, True),
        (b"", None, True),
    ],
)  # fmt: skip
def test_the_first_value_is_closed_where_the_head_ends(head: bytes, value: Any, lines: bool) -> None:
    assert opening(source(head)) == (value, lines)


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=20).map(lambda x: {"k": [x]}))
def test_every_prefix_of_a_document_opens_to_a_part_of_it(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False).encode()
    for end in range(1, len(text) + 1):
        assert isinstance(opening(source(text[:end])).value, dict)
    assert opening(source(text)).value == document


def test_the_record_of_a_list_is_its_first_item() -> None:
    assert opening(source(b'[{"a": 1}, {"b": 2}]')).record == {"a": 1}
    assert opening(source(b"[[1]]")).record == {}


def test_a_key_is_found_at_either_end() -> None:
    both = source(b'{"a": ', b'"b": 1}')
    assert mentions(both, "a", "b")
    assert not mentions(both, "a", "c")
