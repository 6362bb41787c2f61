"""The picture of damage curves: well-formed, escaped, the same bytes for the same curves."""

import xml.etree.ElementTree as ET

from counterpoint.metrics.damage import Curve, Point, damage_curve
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.view.pictures import damage_svg

CHAIN = RoleGraph(["planner", "solver", "critic"], [(0, 1), (1, 2)])


def panels(svg):
    return ET.fromstring(svg).findall("{http://www.w3.org/2000/svg}g")


def test_there_is_a_panel_for_every_operator():
    curves = [damage_curve([CHAIN], name, replicates=2) for name in ("delete nodes", "delete edges")]
    assert len(panels(damage_svg(curves))) == 2
    assert damage_svg(curves) == damage_svg(curves)
    assert len(panels(damage_svg([]))) == 0


def test_names_are_text_and_never_markup():
    svg = damage_svg([Curve("<script>", (), {}, {}, 0, 0)], title="a & b")
    assert "<script>" not in svg
    assert "a &amp; b" in svg


def test_a_rise_of_forest_match_is_drawn_below_zero():
    damage = {"sim": 0.5, "forest": -0.3}
    curve = Curve("x", (Point(0.5, damage, {"sim": 0, "forest": 0}),), damage, {}, 1, 1)
    assert ">-0.5<" in damage_svg([curve])
