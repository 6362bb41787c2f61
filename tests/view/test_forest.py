"""Forests as tables: hostile names stay names, secrets are masked, long lists are cut and counted."""

from counterpoint.metrics.forests import build_forest
from counterpoint.trace import Step, Trace
from counterpoint.view.forest import Grid, forest_grids, markdown, text

SECRET = "sk-proj-" + "a1B2c3D4" * 6


def test_a_name_breaks_no_table_and_gives_no_secret_away():
    grids = [Grid(("system",), [("a | b\x1b[31m\n[link](x)",), (SECRET,)], [f"note {SECRET}"])]
    assert "a \\| b" in markdown(grids)
    assert "\x1b" not in text(grids)
    for shown in (text(grids), markdown(grids)):
        assert SECRET not in shown


def test_a_long_forest_is_cut_and_counted():
    runs = [
        Trace(str(k), (Step("1", "solver", "x"),), task=f"{k}?", correct=True, labels={"task_id": f"t{k:02}"})
        for k in range(30)
    ]
    shown = text(forest_grids(build_forest(runs)))
    assert "t19" in shown
    assert "t20" not in shown
    assert "... and 10 more" in shown
    assert "30 references of 30 tasks from 30 runs (correct)" in shown
