"""Pictures of traces and results: well-formed, the same bytes each time, everything in them or counted."""

import re
import xml.etree.ElementTree as ET

import pytest
from msgspec.structs import replace

from counterpoint.compare import ComparedPair, Comparison, Difference
from counterpoint.contracts import Context
from counterpoint.graph import CollaborationGraph
from counterpoint.metrics.correctness import last_word
from counterpoint.score import Score
from counterpoint.trace import decode
from counterpoint.view.pictures import (
    claims_svg,
    comparison_svg,
    cost_svg,
    ids_svg,
    lanes_svg,
    scene,
    team_svg,
)
from counterpoint.view.pictures.drawing import OUTCOMES
from counterpoint.view.pictures.scene import outcomes

NS = "{http://www.w3.org/2000/svg}"
EVIL = '</script><script>x</script>"><img onerror=x> \u202e\x07\ud800 sk-proj-abcdefghij0123456789abcd'


def context(steps, **fields):
    graph = CollaborationGraph(decode({"id": "t", "task": "3+4?", "gold": "7", "steps": steps, **fields}))
    return Context(trace=graph.trace, graph=graph)


def step(name, agent, text, *heard, **fields):
    return {"id": name, "agent": agent, "text": text, "heard": list(heard), **fields}


def ring(agents, rounds):
    """Each hears the one before it, the first one the last of the round before."""
    steps, last = [], []
    for turn in range(rounds):
        for agent in range(agents):
            text = ("The answer is 7.", "The answer is 8.", "I am not sure.")[(turn + agent) % 3]
            steps.append(step(f"{turn}.{agent}", f"agent {agent}", text, *last, round=turn))
            last = [f"{turn}.{agent}"]
    return steps


def paths(svg, kind):
    return [one for one in ET.fromstring(svg).iter(f"{NS}path") if one.get("class") == kind]


def test_each_step_is_a_mark_of_its_outcome_and_each_transfer_a_curve_of_its_scope():
    steps = [
        step("a", "A", "The answer is 7.", round=0),
        step("b", "B", "The answer is 8.", "a", round=0),
        step("c", "A", "I wait for the others to say more.", "b", round=1),
        step("d", "tool", "ran", "c", round=1, kind="tool"),
    ]
    found = scene(context(steps))
    assert [spot.outcome for spot in found.spots] == ["right", "wrong", "abstained", "other"]
    assert [link.within for link in found.links] == [True, False, True]
    svg = lanes_svg(found)
    body = svg.partition(">round 0<")[2]
    assert [len(re.findall(f'class="{name}"', body)) for name in OUTCOMES] == [1, 1, 1, 0, 1]
    assert (body.count('class="e"'), body.count('class="e d"')) == (2, 1)


def test_without_a_gold_answer_answers_are_not_graded():
    found = scene(context([step("a", "A", "The answer is 7.")], gold=None))
    assert [spot.outcome for spot in found.spots] == ["ungraded"]


def test_the_widest_curve_carries_the_most_unnecessary_paths():
    found = scene(
        context(
            [step("a", "A", "?"), step("b", "B", "8", "a", answer="8"), step("c", "C", "7", "b", answer="7")]
        )
    )
    assert [link.load for link in found.links] == [1, pytest.approx(1 / 2)]  # b -> c alone is half right


def test_what_was_said_before_is_hatched():
    said = "The bridge can carry trucks of forty tonnes."
    found = scene(context([step("a", "A", said), step("b", "B", said, "a"), step("c", "C", "No.", "b")]))
    assert [spot.repeated for spot in found.spots] == [False, True, False]
    assert len(paths(lanes_svg(found), "h")) == 2  # the step, and the legend


def test_a_cycle_is_drawn_as_one_and_counts_are_beside_the_arrows():
    svg = team_svg(scene(context(ring(3, 3))))
    assert len(paths(svg, "e c")) == 3  # two arrows, and the legend
    assert len(paths(svg, "e c d")) == 1
    assert ">3<" in svg
    assert ">2<" in svg
    assert "3 of them hear each other in a cycle" in svg
    assert "no cycle" in team_svg(scene(context(ring(3, 1))))


@pytest.mark.parametrize(("agents", "rounds"), [(1, 1), (2, 2), (3, 4), (60, 2), (75, 2), (6, 400)])
def test_any_team_is_well_formed_small_and_the_same_each_time(agents, rounds):
    steps = ring(agents, rounds)
    for draw in (lanes_svg, team_svg):
        svg = draw(scene(context(steps)))
        assert svg == draw(scene(context(steps)))
        root = ET.fromstring(svg)
        assert root.get("role") == "img"
        assert root.get("aria-label")
        assert len(svg) < 400_000
        assert "nan" not in svg


def test_many_steps_are_joined_and_what_is_not_drawn_is_counted():
    svg = lanes_svg(scene(context(ring(6, 400))))
    assert "2,400 steps are too many to draw each" in svg
    found = scene(context(ring(75, 2)))
    assert (len(found.lanes), found.others, found.lanes[-1]) == (60, 16, "16 others")
    assert "transfers among the 16 others" in lanes_svg(found)


def test_names_of_steps_and_agents_are_text_and_never_markup():
    found = scene(context([step(EVIL, EVIL, EVIL), step("b", "B", EVIL, EVIL)]))
    charts = (
        cost_svg({EVIL: 1.0}, title=EVIL, unit="tokens"),
        ids_svg({EVIL: Score(0.4, {"syntactic": 0.6, "semantic": 0.2})}),
        claims_svg({EVIL: [(1.0, 2.0)]}),
    )
    for svg in (lanes_svg(found, title=EVIL, links={EVIL: "s1"}), team_svg(found, title=EVIL), *charts):
        tags = {one.tag.removeprefix(NS) for one in ET.fromstring(svg.encode()).iter()}
        assert tags <= {"svg", "title", "desc", "style", "g", "path", "text", "circle", "a"}
        assert "\u202e" not in svg
        assert "abcdefghij0123" not in svg


def test_charts_hold_every_line_and_count_what_they_leave_out():
    curves = {f"s{n}": Score(0.4, {"syntactic": 0.6, "semantic": 0.2}) for n in range(7)}
    assert "2 more systems not drawn" in ids_svg(curves)
    assert "s0: 0.200 at 0, 0.600 at 1" in ids_svg(curves)
    assert ">5 others<" in cost_svg({f"a{n}": 1.0 for n in range(25)}, title="t", unit="tokens")
    ET.fromstring(cost_svg({}, title="t", unit="USD"))


def test_claims_have_a_panel_for_all_and_one_for_those_beyond_the_source():
    svg = claims_svg({"a": [(1.0, 2.0), (0.0, 3.0), (1.0, 0.5)], "b": [(6.0, 0.0)]})
    ET.fromstring(svg)
    assert "a: 3 (2 beyond), 3 (3 beyond), 1.5 (0.5 beyond); b: 6 (0 beyond)" in svg
    assert svg.count('<circle class="f0"') == 2 * 3
    assert svg.count('<circle class="f1"') == 2
    assert ">8<" in svg  # the axis ends at a round number
    assert "1 more systems not drawn" in claims_svg({f"s{n}": [(1.0, 1.0)] for n in range(6)})
    ET.fromstring(claims_svg({}))


def test_what_is_not_known_of_transfers_is_said_below_the_picture():
    found = scene(context(ring(3, 2)))
    assert "Width of a curve: its share of the unnecessary paths" in lanes_svg(found)
    unloaded = replace(found, judged_by="", unloaded="paths are counted up to 3 transfers, here are 5")
    assert "Curves are equally wide; unnecessary paths are not shown: paths are counted up" in lanes_svg(
        unloaded
    )


def test_names_of_a_crowd_do_not_meet_its_arrows_and_counts_stay_apart():
    few, many = (team_svg(scene(context(ring(agents, 3)))) for agents in (12, 40))
    assert "rotate(" in many
    assert "rotate(" not in few
    counts = re.findall(r'<text class="k halo" text-anchor="middle" x="([\d.]+)" y="([\d.]+)">', few)
    assert len(set(counts)) == len(counts) == 12


def test_a_team_that_nobody_hears_is_one_line():
    svg = team_svg(scene(context([step(f"s{n}", f"agent {n}", "The answer is 7.") for n in range(40)])))
    assert "Nobody heard anybody" in svg
    assert "<circle" not in svg
    assert float(ET.fromstring(svg).get("height")) < 60


def test_a_forest_plot_has_a_line_for_each_difference():
    def row(name, difference, low, high):
        ends = (None, None) if low is None else (low, high)
        return Difference(name, 0.5, 0.7, difference, *ends, 0.01, 0.02, 12, "better", "A", "B")

    pair = ComparedPair("A", "B", True, 12, 0, [], [])
    rows = [row("ids", 0.2, 0.1, 0.3), row("depth", -2.0, None, None), row("upr", None, None, None)]
    svg = comparison_svg(Comparison(rows, [pair], [], [], 2))
    ET.fromstring(svg)
    assert "+0.200 [+0.100, +0.300]  better" in svg
    assert svg.count("<circle") == 2
    assert "1 metrics without a difference are not drawn." in svg


def test_a_team_that_writes_and_is_asked_for_no_answer_is_not_said_to_abstain():
    steps = [step("a", "writer", "Built in 1871, it stands."), step("b", "critic", "Good, in 1871.", "a")]
    told = context(steps, task="Write one sentence.", gold=None)
    assert outcomes(told) == {"a": "ungraded", "b": "ungraded"}
    assert last_word(told) == "Good, in 1871."
