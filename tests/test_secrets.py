"""Masking: every rule of the table, what has to stay, and how it behaves on hostile text.

All keys are put together here from pieces that mean nothing, so that no scanner takes them for real ones.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterpoint as cp
from counterpoint.secrets import RULES, mask, mask_value, may_hold_secret

RUN = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3hJ5kL7nP9rS1tV3"
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
BEGIN, END = "-----BEGIN " + "RSA PRIVATE KEY-----", "-----END " + "RSA PRIVATE KEY-----"
BODY = "MIIEow" + RUN

KEYS = [
    ("private-key", f"{BEGIN}\n{BODY}\n{BODY}\n{END}"),
    ("private-key", f"{BEGIN}\\n{BODY}\\n{END}"),
    ("private-key", f"{BEGIN}\n{BODY}"),
    (
        "private-key",
        "-----BEGIN " + f"PGP PRIVATE KEY BLOCK-----\n\nx-y\n-----END {'PGP PRIVATE KEY BLOCK'}-----",
    ),
    ("anthropic", "sk-" + f"ant-api03-{RUN}-AA"),
    ("openrouter", "sk-" + f"or-v1-{HEX}"),
    ("langfuse", "sk-" + "lf-12345678-1234-1234-1234-123456789abc"),
    ("langfuse", "pk-" + "lf-12345678-1234-1234-1234-123456789abc"),
    ("openai", "sk-" + RUN),
    ("openai", "sk-" + "a" * 48),
    ("openai", "sk-" + f"proj-{RUN}_x-{RUN}"),
    ("openai", "sk-" + "test-1234567890abcdef"),
    ("google", "AI" + f"za{RUN[:35]}"),
    ("google", "ya29" + f".{RUN}"),
    ("google", "GOCSPX" + f"-{RUN[:28]}"),
    ("groq", "gsk" + f"_{RUN}"),
    ("xai", "xai" + f"-{RUN}"),
    ("perplexity", "pplx" + f"-{RUN}"),
    ("nvidia", "nvapi" + f"-{RUN}"),
    ("replicate", "r8" + f"_{RUN[:37]}"),
    ("huggingface", "hf" + f"_{RUN[:34]}"),
    ("langsmith", "lsv2" + f"_pt_{HEX}_0a1b2c3d4e"),
    ("langsmith", "ls" + f"__{HEX}"),
    ("logfire", "pylf" + f"_v1_us_{RUN}"),
    ("tavily", "tvly" + f"-dev-{RUN[:32]}"),
    ("pinecone", "pcsk" + f"_{RUN}"),
    *(("github", f"gh{kind}" + f"_{RUN[:36]}") for kind in "pousr"),
    ("github", "github" + f"_pat_{RUN[:22]}_{RUN}"),
    ("gitlab", "glpat" + f"-{RUN[:20]}"),
    ("aws", "AK" + "IAABCDEFGH12345678"),
    ("aws", "AS" + "IAABCDEFGH12345678"),
    *(("slack", f"xox{kind}" + f"-123456789012-{RUN[:24]}") for kind in "abeoprs"),
    ("slack", "xapp" + f"-1-{RUN}"),
    ("stripe", "sk" + f"_live_{RUN[:24]}"),
    ("stripe", "sk" + f"_test_{RUN[:24]}"),
    ("stripe", "rk" + f"_live_{RUN[:24]}"),
    ("stripe", "rk" + f"_test_{RUN[:24]}"),
    ("stripe", "whsec" + f"_{RUN[:32]}"),
    ("npm", "npm" + f"_{RUN[:36]}"),
    ("pypi", "pypi" + f"-{RUN}"),
    ("sendgrid", "SG" + f".{RUN[:22]}.{RUN[:43]}"),
    ("jwt", "ey" + f"J{RUN}.ey" + f"J{RUN}.{RUN}"),
    ("jwt", "ey" + f"J{RUN}.ey" + f"J{RUN}."),
]
"""Whole keys: nothing of them stays."""

IN_PLACE = [
    ("https://hooks.slack.com/services/{}", "slack", "T0/B0/" + RUN),
    ("postgres://{}@db.example/x", "url-login", "ann:pa55"),
    ("redis://{}@localhost:6379", "url-login", ":pa55"),
    ("https://{}@example.org", "url-login", "ann@example.org:p@ss"),
    ("Authorization: Bearer {}", "authorization", "x"),
    ("authorization: Basic {}", "authorization", "dXNlcjpwYXNz"),
    ("AUTHORIZATION=Token {}", "authorization", "abc"),
    ('{{"Authorization": "Bearer {}"}}', "authorization", RUN),
    ("('authorization', 'Bearer {}')", "authorization", RUN),
    (r"{{\"Authorization\": \"Bearer {}\"}}", "authorization", RUN),
    ("curl -H 'Proxy-Authorization: Basic {}'", "authorization", "dXNlcjpwYXNz"),
    ("sent bearer {} along", "authorization", RUN),
    ("Authorization: {}", "token", HEX),
    ("Cookie: {}", "cookie", "theme=dark; session=abc123def456"),
    ("Set-Cookie: {}; HttpOnly", "cookie", "sid=0a1b2c3d4e; Path=/"),
    ('{{"cookie": "{}"}}', "cookie", "session=abc123def456"),
    ('password="{}"', "password", "correct-horse"),
    ("PASSWORD: {}", "password", "hunter2"),
    ("DB_PASSWD={}", "password", "hunter2"),
    ('api_key="{}"', "api-key", "abcdefgh"),
    ("api-key: {}", "api-key", "abcdef123456"),
    ("X-Api-Key: {}", "api-key", HEX),
    ("OPENAI_API_KEY={}", "api-key", "abcdef1234"),
    ("export SERVICE_KEY={}", "api-key", "abcdef123456"),
    ('os.environ["FOO_API_KEY"] = "{}"', "api-key", "abcd12345"),
    (r"{{\"api_key\": \"{}\"}}", "api-key", "abcd12345"),
    ('apiKey: "{}"', "api-key", "abcdefgh"),
    ("AWS_SECRET_ACCESS_KEY={}", "api-key", "wJalr/" + RUN[:34]),
    ("https://x.example/?access_token={}&page=1", "token", "abc123def456"),
    ("client_secret: '{}'", "token", "abcdefghij"),
    ("access_token: '{}'", "token", "abcdefghij"),
    ("SLACK_SIGNING_SECRET={}", "token", HEX),
]
"""Values that are known by what stands around them, which stays."""

ORDINARY = [
    "",
    "a task-based, risk-averse sk-learn pipeline",
    "sk-learn-pipeline-step-2-results",
    "disk-1234567890abcdef1234567890",
    "https://example.org/task-solving-with-agents-2024",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "123e4567-e89b-12d3-a456-426614174000",
    "sha256:" + HEX + HEX,
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Erk==",
    "eyJhbGciOiJIUzI1NiJ9",
    "max_tokens=1000, total_tokens: 12345678",
    "token: 12",
    "the token: internationalization",
    "api_key=os.getenv('OPENAI_API_KEY')",
    "api_key=settings.openai_api_key",
    "api_key=config2024.default.key",
    "client = OpenAI(api_key=key)",
    "api_key='your-api-key-here1'",
    "API_KEY=<key>",
    "API key: see chapter 12",
    "Cookie: theme=dark; lang=en",
    "cookie = request.cookies.get(name)",
    "Authorization: required",
    "the bearer of good news",
    "password: must contain 8 characters",
    '{"password": "string", "secret": "werewolf"}',
    "primary_key='user_id12345', cache_key: abc123def456",
    "the key = value pair",
    "postgres://user:${PASSWORD}@host and postgres://{user}:{password}@host",
    "http://localhost:8080/a@b and mail to a@b.example",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "hf_hub_download, npm_config_registry, sk_test_mode, ghp_short",
    "AKIAVELLI WROTE BOOKS, ASIAN MARKETS",
    "[secret:openai] and [secret:api-key]: stays",
    "\ud83d lone surrogate, key",
]


@pytest.mark.parametrize(("kind", "key"), KEYS)
@pytest.mark.parametrize(
    "around", ["{}", "so {} it is", "x=({})", '{{"a": "{}"}}', "a\n{}\nb", r"a\n{}\nb", "`{}`"]
)
def test_a_key_is_replaced_by_a_hint_of_its_kind(kind: str, key: str, around: str) -> None:
    assert mask(around.format(key)) == around.format(f"[secret:{kind}]")


@pytest.mark.parametrize(("text", "kind", "value"), IN_PLACE)
def test_a_value_known_by_its_surroundings_is_replaced_within_them(text: str, kind: str, value: str) -> None:
    assert mask(text.format(value)) == text.format(f"[secret:{kind}]")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert mask(text) == text


def test_every_secret_of_a_text_is_masked() -> None:
    text = "\n".join(key for _, key in KEYS)
    assert mask(text) == "\n".join(f"[secret:{kind}]" for kind, _ in KEYS)


def test_every_rule_and_every_anchor_has_a_test() -> None:
    tested = [key for _, key in KEYS] + [text.format(value) for text, _, value in IN_PLACE]
    words = ("password", "passwd", "bearer", "key", "token", "secret", "authorization", "cookie")
    for rule in RULES:
        for anchor in rule.patterns:
            assert anchor.lower() in words or any(anchor in text for text in tested), anchor
    assert {rule.name for rule in RULES} == {kind for kind, _ in KEYS} | {kind for _, kind, _ in IN_PLACE}


def test_the_documented_table_lists_every_rule_in_order() -> None:
    page = (Path(__file__).parents[1] / "docs" / "secrets.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == [rule.name for rule in RULES]


PIECES = [key for _, key in KEYS] + [text.format(value) for text, _, value in IN_PLACE]
PIECES += [anchor for rule in RULES for anchor in rule.patterns] + [
    RUN,
    HEX,
    "[secret:x]",
    *"-_.:=@/'\"\\ n\n",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=8).map("".join))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = mask(text)
    assert mask(once) == once


@given(st.text(st.characters()))
def test_no_text_raises(text: str) -> None:
    assert isinstance(mask(text), str)


HOSTILE = [
    "sk-",
    "eyJ",
    "eyJaaaaaaaaa.",
    "api_key='",
    'password="',
    f"{BEGIN}\n",
    "://a:",
    "Authorization: Bearer ",
]
HOSTILE += [
    "bearer a",
    "token:   ",
    "xoxb-",
    "SG.",
    "AKIA",
    "\\nsk-",
    "-",
    " ",
    "hooks.slack.com/services/",
    "key=",
    "cookie=",
    "cookie: a=b; ",
    "(",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_hostile_text_takes_linear_time(unit: str, takes_at_most: Any) -> None:
    text = unit * (1_000_000 // len(unit))
    assert takes_at_most(2, lambda: mask(text))


@pytest.mark.parametrize("text", [key for _, key in KEYS] + [text for text, _, _ in IN_PLACE])
@pytest.mark.parametrize("around", [b"%b", b"\x0a\x41%b\x12", b"zz%bzz"])
def test_bytes_that_hold_a_secret_are_never_said_to_hold_none(text: str, around: bytes) -> None:
    data = around % text.encode()
    assert mask(text) == text or may_hold_secret(data)


@given(st.text())
def test_what_mask_changes_may_hold_a_secret(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert mask(text) == text or may_hold_secret(text.encode())


# --- values known by the key that they stand under ---------------------------------------------------------

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


@pytest.mark.parametrize(
    "key",
    [
        key
        for key, value, _ in UNDER_KEYS
        if isinstance(value, str | bytes | list) and key not in ("", "note")
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
