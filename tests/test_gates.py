import pytest

from counterpoint.errors import UsageError
from counterpoint.gates import Gate, parse_gates


def test_conditions_are_read_with_folds_parameters_and_percent():
    text = "upr>0.4, max(ids) <= .1,duplicated_tokens>25% , ci_low(upr(threshold=0.6, paths=maximal))>=1e-2"
    assert parse_gates(text) == [
        Gate("upr>0.4", "upr", "mean", ">", 0.4),
        Gate("max(ids) <= .1", "ids", "max", "<=", 0.1),
        Gate("duplicated_tokens>25%", "duplicated_tokens", "mean", ">", 0.25),
        Gate(
            "ci_low(upr(threshold=0.6, paths=maximal))>=1e-2",
            "upr(threshold=0.6, paths=maximal)", "ci_low", ">=", 0.01,
        ),
    ]  # fmt: skip


def test_a_requirement_is_the_opposite_of_a_failure():
    (gate,) = parse_gates("upr<=0.4", require=True)
    assert (gate.comparison, gate.fails(0.4), gate.fails(0.41)) == (">", False, True)


@pytest.mark.parametrize(
    ("text", "expected", "column"),
    [
        ("upr>1e999", "this number is too large", 4),
        ("upr", "expected one of < <= > >=", 3),
        ("upr>", "expected a number", 4),
        ("upr>abc", "expected a number", 4),
        ("upr>0.4 ids<0.3", "expected a comma between conditions", 8),
        ("upr>0.4,", "expected a metric", 8),
        ("upr==0.4", "expected one of < <= > >=", 3),
        ("max(upr>0.4", "this bracket is never closed", 3),
        ("max(min(upr))>0.4", "max(...) takes one metric", 4),
        ("max(upr ids)>0.4", "max(...) takes one metric", 4),
        ("0.4<upr", "expected a metric", 0),
    ],
)
def test_a_caret_stands_under_the_mistake(text: str, expected: str, column: int):
    with pytest.raises(UsageError) as caught:
        parse_gates(text)
    first, shown, caret = str(caught.value).split("\n")
    assert expected in first
    assert shown == f"  {text}"
    assert caret == "  " + " " * column + "^"
