"""Results that people can look at: figures and drawings."""

from bezoar.report._figures import Panel, holdings_figure, network_figure, panels_figure
from bezoar.report._html import write_report
from bezoar.report._networks import draw_network
from bezoar.report._paper_figures import (
    Column,
    gradients_figure,
    networks_figure,
    partitions_figure,
)
from bezoar.report._paper_pages import Reproduced, write_figure
from bezoar.report._style import LOOKS, Look, look
from bezoar.report._summary import Image, Summary, Table
from bezoar.report._tables import save_table
from bezoar.report._theory_figures import lower_bound_figure, topology_figure
from bezoar.report._theory_pages import (
    write_figure_9,
    write_figure_10,
    write_table_1,
    write_table_2,
)

__all__ = [
    "LOOKS",
    "Column",
    "Image",
    "Look",
    "Panel",
    "Reproduced",
    "Summary",
    "Table",
    "draw_network",
    "gradients_figure",
    "holdings_figure",
    "look",
    "lower_bound_figure",
    "network_figure",
    "networks_figure",
    "panels_figure",
    "partitions_figure",
    "save_table",
    "topology_figure",
    "write_figure",
    "write_figure_9",
    "write_figure_10",
    "write_report",
    "write_table_1",
    "write_table_2",
]
