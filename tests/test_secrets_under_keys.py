"""Masking of values together with the key that they stand under: attributes, labels, headers, recordings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterpoint as cp
from counterpoint.secrets import mask_value, may_hold_secret
from tests.test_secrets import HEX, PIECES, PLAIN, RUN

OPENAI = "sk-" + f"proj-{RUN}"
UNDER_KEYS = [
    ("api_key", "hunter9secret", "[secret:api-key]"),
    ("apiKey", "two words", "[secret:api-key]"),
    ("openai.api.key", "abcdefgh", "[secret:api-key]"),
    ("http.request.header.x-api-key", ["abcdef123456"], ["[secret:api-key]"]),
    ("http.request.header.x-api-key.0", "abcdef123456", "[secret:api-key]"),
    ("api_keys", ("abcdef123456", "short"), ["[secret:api-key]", "short"]),
    ("SERVICE_KEY", "abcdef123456", "[secret:api-key]"),
    ("api_key", OPENAI, "[secret:openai]"),
    ("db.password", "s3cretpw", "[secret:password]"),
    ("password", "correct horse, {battery}", "[secret:password]"),
    ("password", "x[secret:openai]", "[secret:password]"),
    ("password", b"\xffhunter2", b"[secret:password]"),
    ("PASSWD", "hunter", "[secret:password]"),
    ("access_token", "abc123def456", "[secret:token]"),
    ("client_secret", "abcdefghij", "[secret:token]"),
    ("authorization", HEX, "[secret:token]"),
    ("Authorization", "Bearer x", "Bearer [secret:authorization]"),
    ("http.request.header.authorization", ["Basic dXNlcjpwYXNz"], ["Basic [secret:authorization]"]),
    ("authorization", '["Basic dXNlcjpwYXNz"]', '["Basic [secret:authorization]"]'),
    ("proxy-authorization", 'Digest username="ann", nonce="1"', "Digest [secret:authorization]"),
    ("authorization", f"Bearer {OPENAI}", "Bearer [secret:openai]"),
    ("http.request.header.cookie", ["session=abc; theme=dark"], ["[secret:cookie]"]),
    ("set-cookie", "sid=abcdef; Path=/; HttpOnly", "[secret:cookie]"),
    ("cookie", HEX, "[secret:cookie]"),
    ("note", f"use {OPENAI}", "use [secret:openai]"),
    ("note", b"\xff" + OPENAI.encode(), b"\xff[secret:openai]"),
    ("headers", {"Authorization": "Basic dXNlcjpwYXNz"}, {"Authorization": "Basic [secret:authorization]"}),
    ("", [{"db": {"password": "hunter"}}], [{"db": {"password": "[secret:password]"}}]),
    ("api_keys", {"openai": "abcdefgh"}, {"openai": "[secret:api-key]"}),
    ("password", {"value": "hunter", "length": 6}, {"value": "[secret:password]", "length": 6}),
    ("client_secret", {"a": [{"b": ["abcdefgh"]}]}, {"a": [{"b": ["[secret:token]"]}]}),
    ("api_keys", {"cache_key": "abcdefgh"}, {"cache_key": "[secret:api-key]"}),
    ("api_key", {"type": "string", "value": "abcdefgh"}, {"type": "string", "value": "[secret:api-key]"}),
    ("authorization", {"header": "Basic x"}, {"header": "Basic [secret:authorization]"}),
    ("cookies", {"sid": HEX}, {"sid": "[secret:cookie]"}),
    ("password", {"note": f"use {OPENAI}"}, {"note": "[secret:password]"}),
    ("db.pwd", "hunter", "[secret:password]"),
    ("passphrase", "correct horse", "[secret:password]"),
    ("smtp_pass", "hunter", "[secret:password]"),
    ("AccountKey", RUN + "==", "[secret:api-key]"),
    ("", {"name": "x-api-key", "value": "abcdefgh"}, {"name": "x-api-key", "value": "[secret:api-key]"}),
    ("", {"value": "hunter", "name": "password"}, {"value": "[secret:password]", "name": "password"}),
    (
        "attributes",
        [{"key": "api_key", "value": {"stringValue": "abcdefgh"}}],
        [{"key": "api_key", "value": {"stringValue": "[secret:api-key]"}}],
    ),
    (
        "headers",
        [["authorization", "Basic x"], ["x-api-key", "abcdefgh"]],
        [["authorization", "Basic [secret:authorization]"], ["x-api-key", "[secret:api-key]"]],
    ),
    ("used", {OPENAI: 1, f"{OPENAI}2": 2}, {"[secret:openai]": 1, "[secret:openai]~": 2}),
]  # fmt: skip

ORDINARY_UNDER_KEYS = [
    ("gen_ai.usage.input_tokens", "123456789012"),
    ("token_count", "abc123def456"),
    ("max_tokens", "1000 and 2000 tokens"),
    ("llm.token_count.prompt", 300),
    ("token", 12),
    ("token", "internationalization"),
    ("session.id", "abc123def456"),
    ("user.id", HEX),
    ("enduser.id", "ann-1234567890"),
    ("cache_key", "abc123def456"),
    ("monkey", "abcdef123456"),
    ("api_key", "your-api-key-here1"),
    ("api_key", "${OPENAI_API_KEY}"),
    ("api_key", "<the key of the user>"),
    ("api_key_env", "OPENAI_API_KEY"),
    ("password", ""),
    ("password", "********"),
    ("password", "[REDACTED]"),
    ("has_password", "true"),
    ("has_password", True),
    ("password", {"type": "string", "description": "The password of the user"}),
    ("secret", "werewolf"),
    ("authorization", "granted"),
    ("authorization", "Bearer <token>"),
    ("cookie", "chocolate chip"),
    ("cookies", {"type": "object"}),
    ("token_counts", {"prompt": "123456789012", "completion": 7}),
    ("tokens", {"prompt": "abc123def456", "total": 12}),
    ("token_usage", {"total_tokens": "abc123def456"}),
    ("token", {"count": 12, "at": "2026-01-02T03:04:05Z", "kind": "internationalization"}),
    ("authorization", {"enabled": True, "mode": "granted", "scopes": ["abc123def456"]}),
    ("api_key", {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "The key of the API"}),
    ("api_keys", {"openai": "${OPENAI_API_KEY}", "google": 12345678, "xai": True, "groq": "short"}),
    ("password", {"description": {"de": "Das Passwort"}, "minLength": 8}),
    ("secret", {"role": "werewolf"}),
    ("keys", {"a": "abcdef123456"}),
    ("pwd", "/home/ann/work2"),
    ("process.env.PWD", "C:\\work2"),
    ("first_pass", "run2024b"),
    ("required", ["password", "username"]),
    ("required", ["api_key", "gpt-4-turbo-2024"]),
    ("", {"name": "password", "value": "", "type": "string"}),
    ("", {"name": "session.id", "value": "abc123def456"}),
    ("", {"name": "password", "description": "The password of the user"}),
    ("data", b"\x00\xff\x80"),
    ("none", None),
]


@pytest.mark.parametrize(("key", "value", "masked"), UNDER_KEYS)
def test_a_value_is_masked_together_with_the_key_it_stands_under(
    key: str, value: object, masked: object
) -> None:
    assert mask_value(key, value) == masked
    assert mask_value(key, masked) == masked


@pytest.mark.parametrize(("key", "value"), ORDINARY_UNDER_KEYS)
def test_an_ordinary_value_stays_under_its_key(key: str, value: object) -> None:
    assert mask_value(key, value) == value


@given(
    st.sampled_from([*{key for key, *_ in UNDER_KEYS}, "note"]),
    st.lists(st.one_of(st.sampled_from([*PIECES, "Bearer ", "Basic "]), st.text(max_size=8)), max_size=6),
)
def test_masking_a_pair_twice_is_masking_it_once(key: str, pieces: list[str]) -> None:
    once = mask_value(key, "".join(pieces))
    assert mask_value(key, once) == once


def shape(value: object) -> object:
    """The value with every text the same, since masking changes nothing else."""
    if isinstance(value, dict):
        return [shape(item) for item in value.values()]
    if isinstance(value, list):
        return [shape(item) for item in value]
    return "" if isinstance(value, str) else value


@given(PLAIN)
def test_masking_a_structure_changes_its_texts_only_and_only_once(value: object) -> None:
    once = mask_value("", value)
    assert repr(shape(once)) == repr(shape(value))
    assert repr(mask_value("", once)) == repr(once)


@pytest.mark.parametrize(
    "key",
    [
        key
        for key, value, _ in UNDER_KEYS
        if isinstance(value, str | bytes | list) and key not in ("", "note", "attributes", "headers")
    ],
)
def test_an_attribute_named_like_a_secret_is_never_said_to_hold_none(key: str) -> None:
    attribute = b"\x0a" + bytes([len(key)]) + key.encode() + b"\x12\x07\x0a\x05abcde"
    assert may_hold_secret(attribute)


@pytest.mark.parametrize(
    "key", ["llm.token_count.prompt", "gen_ai.usage.input_tokens", "session.id", "max_tokens"]
)
def test_an_ordinary_attribute_is_not_opened_for_its_key(key: str) -> None:
    assert not may_hold_secret(b"\x0a" + bytes([len(key)]) + key.encode() + b"\x12\x02\x18\x07")


@pytest.mark.parametrize("keep", [False, True])
def test_labels_named_like_secrets_are_masked_in_a_recording_unless_they_are_kept(
    tmp_path: Path, keep: bool
) -> None:
    labels = {"api_key": "hunter9secret", "login": {"password": ["hunter9secret"]}, "session": "hunter9"}
    with cp.record("r", to=tmp_path / "r.jsonl", labels=labels, keep_secrets=keep) as run:
        run.step("a", "Four.")
    told = (tmp_path / "r.jsonl").read_text()
    assert told.count("hunter9secret") == (2 if keep else 0)
    assert keep or '"labels":{"api_key":"[secret:api-key]","login":{"password":["[secret:password]"]}' in told
