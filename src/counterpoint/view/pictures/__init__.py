"""Pictures of a trace and of results, as SVG of our own: same input, same bytes; no script, no network.

`lanes` and `team` show one trace, `charts` and `damage` show results. Texts of users stand in them escaped,
secrets masked.
"""

from counterpoint.view.pictures.charts import claims_svg, comparison_svg, cost_svg, ids_svg
from counterpoint.view.pictures.damage import damage_svg
from counterpoint.view.pictures.drawing import STYLE
from counterpoint.view.pictures.lanes import lanes_svg
from counterpoint.view.pictures.scene import Scene, scene
from counterpoint.view.pictures.team import team_svg

__all__ = [
    "STYLE",
    "Scene",
    "claims_svg",
    "comparison_svg",
    "cost_svg",
    "damage_svg",
    "ids_svg",
    "lanes_svg",
    "scene",
    "team_svg",
]
