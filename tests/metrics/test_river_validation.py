"""The validation kit: readers of human data, and made cases whose truth is known."""

import pytest

import counterpoint as cp
from counterpoint.errors import UsageError
from counterpoint.metrics.river_validation import (
    agreement,
    read_ratings,
    read_units,
    read_votes,
    synthetic,
    unity_of,
)

VOTES = """voter-id,comment-id,vote
a,1,1
a,2,1
a,3,1
b,1,1
b,2,-1
b,3,0
"""


def test_votes_are_read_as_exported(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text(VOTES)
    (case,) = read_votes(file)
    assert case.held["b"] == {"1": 1, "2": 0}
    assert unity_of(case).value == pytest.approx(5 / 12)
    assert case.reference == 0.5


def test_unity_of_ratings_is_pairwise_agreement_where_all_rate_all():
    ratings = {"a": (1, 5), "b": (3, 4), "c": (5, 2)}
    rows = [
        {"agent": agent, "statement": str(n), "rating": rating}
        for agent, given in ratings.items()
        for n, rating in enumerate(given)
    ]
    (case,) = read_ratings(rows)
    assert unity_of(case).value == pytest.approx(case.reference)


def test_units_are_compared_with_their_overlap_or_a_reference_of_their_own():
    rows = [{"agent": agent, "unit": unit} for agent, unit in ("ax", "ay", "bx")]
    (case,) = read_units(rows)
    assert unity_of(case).value == pytest.approx(0.75)
    assert case.reference == pytest.approx(2 / 3)
    (given,) = read_units([{**row, "reference": "0.4"} for row in rows])
    assert given.reference == 0.4


def test_a_column_splits_cases():
    rows = [{"case": case, "agent": agent, "unit": "x"} for case in "12" for agent in "ab"]
    assert [case.case for case in read_units(rows)] == ["1", "2"]


@pytest.mark.parametrize(
    ("read", "rows", "message"),
    [
        (read_units, [{"agent": "a"}], "row 1 has no 'unit'"),
        (read_votes, [{"voter-id": "a", "comment-id": "1", "vote": "2"}], "vote 2 is none of"),
        (read_votes, [{"voter-id": "a", "comment-id": "1", "vote": "x"}], "no number"),
        (read_ratings, [{"agent": "a", "statement": "1", "rating": "9"}], "not between"),
    ],
)
def test_what_cannot_be_read_is_named(read, rows, message):
    with pytest.raises(UsageError, match=message):
        read(rows)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="could not be read"):
        read_units(tmp_path / "none.csv")


def test_the_heuristic_finds_what_made_cases_share():
    made = synthetic(12)
    rows = cp.evaluate([trace for trace, _ in made], ["unity"], embedder="hashing").rows
    score = agreement([(row.value, truth) for row, (_, truth) in zip(rows, made, strict=True)])
    assert score.value > 0.95
    assert abs(score.parts["mean_difference"]) < 0.05


def test_agreement_of_nothing_is_undefined():
    assert agreement([]).value is None
    assert agreement([(1, 1), (1, 2), (1, 3)]).value is None
