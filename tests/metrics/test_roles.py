"""Role tables: names of frameworks to roles, versioned, checked, the user's own in front."""

import json
from importlib.resources import files

import pytest

from counterpoint.errors import UsageError
from counterpoint.metrics.roles import ROLES, coverage, role_table, words

TABLES = {
    item.name: json.loads(item.read_text(encoding="utf-8"))
    for item in files("counterpoint.metrics").joinpath("aliases").iterdir()
    if item.name.endswith(".json")
}
# A change of a table is a change of scores: raise its version, then put the new hash here.
PINNED = {
    "autogen.json": 1, "chatdev.json": 1, "generic.json": 1, "wirings.json": 1,
    "sha256": "d978edab04c4e83815efdd5584e322200cdcf2526d6541242eaec09c34a3772a",
}  # fmt: skip


def test_a_table_does_not_change_without_a_new_version():
    found = {name: table["version"] for name, table in TABLES.items()}
    assert {**found, "sha256": role_table().sha256} == PINNED


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Planner", "planner"),
        ("MagenticOneOrchestrator", "planner"),
        ("WebSurfer", "researcher"),
        ("researcher_a", "researcher"),
        ("Computer_terminal", "tool"),
        ("Verification_Expert", "verifier"),
        ("Code Reviewer", "critic"),
        ("Software Test Engineer", "tester"),
        ("Web Developer", "coder"),
        ("Chief Executive Officer", "decision"),
        ("Affirmative side", "debater"),
        ("Debater 2", "debater"),
        ("solver#12", "solver"),
        ("triage", "router"),
        ("synthesizer_agent", "aggregator"),
        ("Editor", "reviser"),
        ("memory", "memory"),
        ("FinalRefer", "decision"),
        ("Ünïcödé 研究", "other"),
        ("Agent 3", "other"),
        ("", "other"),
    ],
)
def test_names_of_known_frameworks_have_their_role(name, role):
    assert role_table().role(name) == role


def test_every_role_of_the_vocabulary_can_be_reached():
    assert len(ROLES) == 15
    reached = {role for table in TABLES.values() for role in table.get("names", {}).values()}
    reached |= {role for table in TABLES.values() for _, role in table.get("patterns", [])}
    assert reached == set(ROLES)


def test_no_name_stands_in_two_tables_with_different_roles():
    found: dict[str, str] = {}
    for table in TABLES.values():
        for name, role in table.get("names", {}).items():
            assert name == words(name)
            assert found.setdefault(name, role) == role


def test_the_order_is_exact_then_pattern_then_the_default_of_the_kind():
    table = role_table()
    assert table.role("backstory", "Critic") == "critic"
    assert table.role("nobody", kind="decision") == "decision"
    assert table.role("nobody", kind="tool_call") == "tool"
    assert table.role("web_search", kind="tool_call") == "tool"
    assert table.role("save_memory", kind="tool_call") == "memory"


def test_a_long_text_is_no_name():
    assert role_table().role("You are a critic. " * 20) == "other"


def test_coverage_is_the_share_of_known_roles():
    assert coverage(["planner", "other"]) == 0.5
    assert coverage([]) is None


def test_a_users_table_comes_first_and_has_another_hash(tmp_path):
    path = tmp_path / "roles.json"
    path.write_text('{"Red Team": "critic", "planner": "router"}')
    table = role_table(path)
    assert [table.role(name) for name in ("red_team", "Planner", "Coder")] == ["critic", "router", "coder"]
    assert table.sha256 != role_table().sha256
    path.write_text(
        json.dumps({"schema": "counterpoint.roles/1", "patterns": [["\\bscribe\\b", "memory"]], "names": {}})
    )
    assert role_table(path).role("The Scribe") == "memory"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nonsense", "not JSON"),
        ("[]", "a JSON object is needed"),
        ('{"Red Team": "critc"}', "did you mean 'critic'"),
        ('{"schema": "counterpoint.roles/9"}', "schema 'counterpoint.roles/9'"),
        ('{"schema": "counterpoint.roles/1", "patterns": [["(", "critic"]]}', "pattern '\\('"),
        ('{"schema": "counterpoint.roles/1", "patterns": ["x"]}', "a list of"),
        ('{"schema": "counterpoint.roles/1", "names": []}', '"names" is an object'),
    ],
)
def test_a_bad_table_is_refused_with_its_name(tmp_path, content, message):
    path = tmp_path / "roles.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        role_table(path)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.json"):
        role_table(tmp_path / "nowhere.json")
