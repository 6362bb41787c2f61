"""Numbers as people write them: a count of one trace is whole, a mean of counts has a decimal at most."""

import pytest

from counterpoint.view.table import number


@pytest.mark.parametrize(
    ("value", "metric", "told"),
    [
        (477.0, "tokens_out", "477"),
        (83.0, "tokens_out", "83"),
        (100.0, "tokens_out", "100"),
        (191.46, "tokens_out", "191.5"),
        (2220.0, "tokens_in", "2,220"),
        (1.333, "parallelism", "1.33"),
        (0.0, "unparsed", "0"),
        (-136.0, "tokens_out", "−136"),
        (-0.0001, "upr", "0.000"),
        (-1e-7, "cost_usd", "−1e-07"),
        (0.5, "upr", "0.500"),
        (1.0, "accuracy", "1.000"),
        (None, "steps", "–"),
    ],
)
def test_a_number_has_the_decimals_that_say_something(value, metric, told):
    assert number(value, metric) == told
