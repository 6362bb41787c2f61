"""``counterpoint claims``."""

import json

import pytest
from typer.testing import CliRunner

from counterpoint.cli import app
from counterpoint.errors import ModelError, UsageError

KEY = "sk-abcdefghijklmnop1234567890XYZ"
TRACE = {
    "id": "q1",
    "task": "A dam failed.",
    "steps": [
        {
            "id": "s1",
            "agent": "Ana",
            "text": "Rain broke it. Key sk-abcdefghijklmnop1234567890XYZ works.",
            "round": 0,
        },
        {"id": "s2", "agent": "Ben", "text": "Rain broke it.", "round": 1},
    ],
}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERPOINT_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "t.jsonl"
    file.write_text(json.dumps(TRACE))
    return str(file)


def run(*arguments):
    return CliRunner().invoke(
        app, ["claims", *arguments, "--embedder", "hashing", "-q"], catch_exceptions=True
    )


def test_the_lives_of_claims_are_rows(path):
    result = run(path, "--format", "jsonl")
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    first = [(row["event"], row["agent"], row["round"]) for row in rows if row["life"] == 1]
    assert first == [("born", "Ana", 0), ("adopted", "Ben", 1)]
    assert "sk-abcdef" not in result.stdout


def test_a_table_is_for_people(path, tmp_path):
    result = run(path)
    assert result.exit_code == 0
    assert "adopted" in result.stdout
    assert run(path, "-o", str(tmp_path / "out.tsv")).exit_code == 0
    assert "adopted" in (tmp_path / "out.tsv").read_text()


def test_a_dry_run_says_what_it_would_cost_and_asks_nothing(path):
    result = run(
        path, "--judge", "llm", "--model", "gpt-4o", "--base-url", "http://127.0.0.1:9/v1", "--dry-run"
    )
    assert result.exit_code == 0
    assert "calls" in result.stdout
    assert "USD" in result.stdout
    assert "0 calls" in run(path, "--dry-run").stdout


def test_a_dry_run_stands_in_for_claims_that_a_model_would_find(path):
    how = ("--judge", "llm", "--model", "unpriced", "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
    result = run(path, *how, "--decomposer", "llm")
    assert result.exit_code == 0
    assert "no public price known" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--judge", "llm"), UsageError),
        (("--judge", "lexicl"), UsageError),
        (("--format", "xml"), UsageError),
    ],
)
def test_bad_usage_is_told(path, arguments, error):
    assert isinstance(run(path, *arguments).exception, error)


def test_an_endpoint_that_is_down_is_an_error(path, monkeypatch):
    monkeypatch.setattr("counterpoint.models.chat_http.ChatHTTP.retries", 0, raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    how = ("--judge", "llm", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--no-cache")
    result = run(path, *how)
    assert isinstance(result.exception, ModelError)
