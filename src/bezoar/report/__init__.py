"""Results that people can look at: figures and drawings."""

from bezoar.report._figures import Panel, holdings_figure, network_figure, panels_figure
from bezoar.report._networks import draw_network
from bezoar.report._style import LOOKS, Look, look
from bezoar.report._tables import save_table
from bezoar.report._theory_figures import lower_bound_figure, topology_figure

__all__ = [
    "LOOKS",
    "Look",
    "Panel",
    "draw_network",
    "holdings_figure",
    "look",
    "lower_bound_figure",
    "network_figure",
    "panels_figure",
    "save_table",
    "topology_figure",
]
