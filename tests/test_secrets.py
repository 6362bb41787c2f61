"""Masking: every rule of the table, what has to stay, and how it behaves on hostile text.

All keys are put together here from pieces that mean nothing, so that no scanner takes them for real ones.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.secrets import RULES, mask, may_hold_secret

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
    ("cerebras", "csk" + f"-{RUN}"),
    ("fireworks", "fw" + f"_{RUN[:22]}"),
    ("together", "tgp_v1" + f"_{RUN}"),
    ("jina", "jina" + f"_{RUN}"),
    *(("github", f"gh{kind}" + f"_{RUN[:36]}") for kind in "pousr"),
    ("github", "github" + f"_pat_{RUN[:22]}_{RUN}"),
    ("gitlab", "glpat" + f"-{RUN[:20]}"),
    ("aws", "AK" + "IAABCDEFGH12345678"),
    ("aws", "AS" + "IAABCDEFGH12345678"),
    ("azure", f"{RUN}aB3d" + "JQQ" + f"J99{RUN[:26]}"),
    ("azure", "aB38" + f"Q~{RUN[:34]}"),
    *(("slack", f"xox{kind}" + f"-123456789012-{RUN[:24]}") for kind in "abcdeoprs"),
    ("slack", "xapp" + f"-1-{RUN}"),
    ("stripe", "sk" + f"_live_{RUN[:24]}"),
    ("stripe", "sk" + f"_test_{RUN[:24]}"),
    ("stripe", "rk" + f"_live_{RUN[:24]}"),
    ("stripe", "rk" + f"_test_{RUN[:24]}"),
    ("stripe", "whsec" + f"_{RUN[:32]}"),
    ("npm", "npm" + f"_{RUN[:36]}"),
    ("pypi", "pypi" + f"-{RUN}"),
    ("sendgrid", "SG" + f".{RUN[:22]}.{RUN[:43]}"),
    ("vault", "hvs" + f".{RUN[:24]}"),
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
    # what signs or opens a URL
    ("https://maps.example/?q=x&key={}&z=1", "url-key", HEX),
    ("https://maps.example/?key={}", "url-key", "123e4567-e89b-12d3-a456-42661417400a"),
    ("https://blob.example/c?sv=2026-01-01&sig={}&sp=r", "url-key", RUN[:40] + "%2B%3D"),
    (r"https://blob.example/c?se=1\u0026sig={}", "url-key", RUN),
    ("https://s3.example/o?X-Amz-Signature={}&a=1", "url-key", HEX + HEX),
    ("https://cdn.example/o?Expires=1&Signature={}", "url-key", RUN + "~"),
    ("https://x.example/?pwd={}&page=1", "password", "hunter2"),
    ("https://x.example/?X-Amz-Security-Token={}&page=1", "token", RUN + "%2F%2B%3D"),
    # options and arguments of commands
    ("tool --password {} db", "password", "hunter2"),
    ("tool --db-password='{}'", "password", "correct-horse"),
    ("tool --api-key '{}'", "api-key", "abcdefgh1"),
    ("tool --access-token {}", "token", HEX),
    ('["tool", "--password", "{}", "db"]', "password", "hunter2"),
    ("curl -s -u ann:{} https://x.example", "command", "hunter"),
    ("curl --user 'ann:{}' https://x.example", "command", "pa$$word".replace("$", "s")),
    ("sshpass -p {} ssh ann@x.example", "command", "hunter"),
    ("mysql -u root -p{} shop", "command", "hunter"),
    ("docker login -u ann -p {} x.example", "command", "hunter"),
    # a name and its value, each for itself
    ('{{"name": "Authorization", "value": "{}"}}', "token", HEX),
    ('{{"name": "Authorization", "value": "Bearer {}"}}', "authorization", "x"),
    ('{{"name": "x-api-key", "value": "{}"}}', "api-key", "abcdefgh"),
    (r"{{\"name\": \"x-api-key\", \"value\": \"{}\"}}", "api-key", "abcdefgh"),
    ('{{"name": "password",\n      "value": "{}"}}', "password", "correct-horse"),
    ('{{"name": "Cookie", "value": "{}"}}', "cookie", "session=abc123def456"),
    ('{{"key": "api_key", "value": {{"stringValue": "{}"}}}}', "api-key", "abcdefgh"),
    ("- name: OPENAI_API_KEY\n  value: {}", "api-key", HEX),
    ('<add key="ApiKey" value="{}"/>', "api-key", "abcdefgh"),
    ("<password>{}</password>", "password", "hunter2"),
    ("[('x-api-key', '{}')]", "api-key", "abcdef123"),
    ('["auth_token", "{}"]', "token", HEX),
    ("(b'authorization', b'Bearer {}')", "authorization", "x"),
    # more names
    ("pwd={}", "password", "hunter2"),
    ("Server=db;Uid=sa;Pwd={};", "password", "hunter2"),
    ('passphrase: "{}"', "password", "correct-horse"),
    ("DB_PASS={}", "password", "hunter2"),
    ("smtp_pass='{}'", "password", "hunter"),
    ("password: {}", "password", "P@ssw0rd!"),
    ("**Password:** `{}`", "password", "hunter2"),
    ("AccountKey={};EndpointSuffix=x", "api-key", RUN + "=="),
    ("Cookie: {}", "cookie", "session=abcdefghijklmnop"),
    ("Authorization: Bot {}", "authorization", "abc123"),
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
    "key=5, token = 3, sig=0.05, pass: yes, p=0.05, x^2 = key * 5",
    "--password is required, --token count, --token internationalization, --max-tokens 1000",
    "PWD=/home/ann/work2, OLDPWD=/tmp/a1b2c3, pwd='/srv/app2', pwd: src/main2, pwd=C:\\work2",
    "mkdir -p /tmp/a1b2; docker run -p 8080:80 x; ssh -p 2222 x; python -u main.py:app; git log -p HEAD~12",
    "mysql -u root -p shop2db; curl -u https://x.example; docker login x -p",
    'required = ["password", "password2"], columns = ["api_key", "gpt-4-turbo-2024"], ("token", "a_2024")',
    '"password": ["must", "match"], "tokens": ["abc123def456"], tokens: abc123def456',
    '{"name": "password", "value": ""}, {"name": "token", "value": "internationalization"}',
    '{"title": "Enter the password", "value": "maybe"}',
    '{"key": "session.id", "value": {"stringValue": "abc123def456"}}',
    '{"api_key": 12345678, "access_token": 1e100, "password": 12345e10}',
    "https://x.example/?key=name&sig=none&key=sales-report-2024-final-version",
    "https://x.example/?key=uploads/2024/final-report-v2.pdf",
    "sig=abcdef123456789012345, Signature=abc",
    "cookie: session=required-for-login",
    "pass=12 fail=3, first_pass: run2024b, pass_rate=0.95, tests_pass: 12of14",
    "<key>abc12345</key>, <token>internationalization</token>, token>5, a > password",
    "the key value: abc123def456, the secret number is 12345678, secret: player_1",
    "password = hash(password1), password=get2pass(), password != None, if password == '':",
    "the password hunter2 was wrong, a token abcdef123456 is 12 long",
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


@pytest.mark.parametrize("between", [",", ":", " ", "\n", '", "', "\\n"])
def test_the_secret_beside_an_access_key_id_is_masked_too(between: str) -> None:
    pair = "AK" + f"IAABCDEFGH12345678{between}{RUN[:40]}"
    assert mask(pair) == f"[secret:aws]{between}[secret:aws-secret]"


def test_every_rule_and_every_anchor_has_a_test() -> None:
    tested = [key for _, key in KEYS] + [text.format(value) for text, _, value in IN_PLACE]
    words = {"password", "passwd", "passphrase", "pwd", "pass", "bearer", "key", "token", "secret"}
    words |= {"authorization", "cookie"}
    for rule in RULES:
        for anchor in rule.patterns:
            assert anchor.lower() in words or any(anchor in text for text in tested), anchor
    assert {rule.name for rule in RULES} == {kind for kind, _ in KEYS} | {kind for _, kind, _ in IN_PLACE} | {
        "aws-secret"
    }


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


TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=8).map("".join)
NAMES = st.one_of(
    st.sampled_from(["name", "key", "value", "password", "api_keys", "authorization", "x-api-key"]),
    st.text(max_size=8),
)
PLAIN = st.recursive(
    st.one_of(TEXTS, NAMES, st.none(), st.booleans(), st.integers(), st.floats()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=8,
)


@given(TEXTS)
def test_masking_twice_is_masking_once(text: str) -> None:
    once = mask(text)
    assert mask(once) == once


@given(PLAIN, st.booleans(), st.sampled_from([None, 1]))
def test_json_is_json_afterwards(value: object, ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    assert type(json.loads(mask(text))) is type(json.loads(text))
    (within,) = json.loads(mask(json.dumps([text])))
    assert type(json.loads(within)) is type(json.loads(text))


def test_pem_blocks_are_no_reason_to_break_json() -> None:
    for value in ([[BEGIN], [END]], {"a": {"b": BEGIN}, "c": END}, {"a": BEGIN, "b": END}, {BEGIN: END}):
        json.loads(mask(json.dumps(value)))
    assert mask(json.dumps([BEGIN, BODY, END])) == '["[secret:private-key]"]'


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
    "a",
    "--",
    "&",
    '{"name":',
    '{"name": "key", ',
    "password  ",
    "--password ",
    "pwd=",
    "pass:",
    "?sig=",
    "&sig=a",
    "?key=aaaaaaaaaaaaaaaa.",
    "Signature=0",
    "cookie: sid=sid=",
    'api_key", "value": "',
    'api_key=["aaaa1","',
    '"aaaa1", ',
    "x-key','aaaaaaaa1",
    "key,,,,,,,,,,",
    "key          value",
    "curl -u a:",
    "mysql -pa",
    " -p",
    "JQQJ99",
    "aaa8Q~",
    '-----BEGIN PRIVATE KEY-----"',
    '-----BEGIN PRIVATE KEY-----a-"',
    "AKIAABCDEFGH12345678 ",
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


@given(TEXTS)
def test_what_mask_changes_may_hold_a_secret(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert mask(text) == text or may_hold_secret(text.encode())
