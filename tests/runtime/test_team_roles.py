"""The prompts of the roles: complete, versioned, and never an answer themselves."""

from __future__ import annotations

import re

import pytest

from counterpoint.answers import read_answer
from counterpoint.errors import UsageError
from counterpoint.runtime.roles import KINDS, role, role_names, roles_id

each_role = pytest.mark.parametrize("name", role_names())


def test_the_roles_of_gemmas_are_there():
    assert {"analyst", "code_writer", "math_solver", "adversary", "decider"} <= set(role_names())


@each_role
@pytest.mark.parametrize("kind", KINDS)
def test_a_role_has_a_prompt_for_every_kind_that_no_reader_takes_for_an_answer(name, kind):
    found = role(name, kind)
    assert len(found.system) > 40
    assert found.summary
    assert read_answer(found.system, kind=kind) is None


def test_only_the_code_writer_writes_code_and_only_the_adversary_is_one():
    assert [name for name in role_names() if role(name).writes_code] == ["code_writer"]
    assert [name for name in role_names() if role(name).adversarial] == ["adversary"]


def test_the_adversary_is_told_to_commit_to_a_wrong_answer():
    assert "specific wrong answer" in role("adversary").system


def test_prompts_differ_by_kind_where_it_matters():
    for name in ("analyst", "code_writer", "math_solver", "adversary", "critic"):
        assert len({role(name, kind).system for kind in KINDS}) == 3
    assert "letter of the matching option" in role("code_writer", "choice").system


def test_the_id_has_version_and_hash():
    assert re.fullmatch(r"roles/\d+@[0-9a-f]{8}", roles_id())


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("analist", "number", "no role 'analist' (did you mean 'analyst'?); there are: direct, "),
        ("analyst", "letter", "no kind of answer 'letter': it is number, choice, text"),
    ],
)
def test_what_there_is_not_is_named(name, kind, told):
    with pytest.raises(UsageError) as raised:
        role(name, kind)
    assert told in str(raised.value)
