"""What people look at: curves, pictures, tables, pages, and the HTML report made of them.

A page is printed on the terminal, kept as a file beside its pictures, and shown in the report.
Modules are imported when first used: a table of runs needs no torch, the theory no matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bezoar.report._best import LEAD, is_ahead
    from bezoar.report._figures import (
        axis_of,
        draw_titled,
        network_figure,
        panels_figure,
        partition_figure,
        plot_curves,
        plot_grid,
        plot_line,
        save_figure,
        shade,
    )
    from bezoar.report._html import write_report
    from bezoar.report._network_pages import describe, network_page, samples_of, theory_page
    from bezoar.report._networks import draw_network
    from bezoar.report._page import (
        THRESHOLDS,
        Curve,
        Image,
        JudgedClaim,
        Page,
        Panel,
        Table,
        Verdict,
        check_markdown,
        check_picture,
        markdown_pictures,
        page_folders,
    )
    from bezoar.report._style import BASELINE, POISONED, REGULAR, Look, look, pictures
    from bezoar.report._tables import (
        agents_table,
        data_notes,
        ends_table,
        notes_about,
        panel_page,
        results_table,
        run_document,
        run_page,
        runs_page,
        shown_first,
        training_time,
    )

__all__ = [
    "BASELINE",
    "LEAD",
    "POISONED",
    "REGULAR",
    "THRESHOLDS",
    "Curve",
    "Image",
    "JudgedClaim",
    "Look",
    "Page",
    "Panel",
    "Table",
    "Verdict",
    "agents_table",
    "axis_of",
    "check_markdown",
    "check_picture",
    "data_notes",
    "describe",
    "draw_network",
    "draw_titled",
    "ends_table",
    "is_ahead",
    "look",
    "markdown_pictures",
    "network_figure",
    "network_page",
    "notes_about",
    "page_folders",
    "panel_page",
    "panels_figure",
    "partition_figure",
    "pictures",
    "plot_curves",
    "plot_grid",
    "plot_line",
    "results_table",
    "run_document",
    "run_page",
    "runs_page",
    "samples_of",
    "save_figure",
    "shade",
    "shown_first",
    "theory_page",
    "training_time",
    "write_report",
]

#: The modules, those first that import little.
_MODULES = (
    "_page",
    "_style",
    "_tables",
    "_network_pages",
    "_networks",
    "_figures",
    "_best",
    "_html",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            found = import_module(f"bezoar.report.{module}")
            if hasattr(found, name):
                return getattr(found, name)
    raise AttributeError(f"module 'bezoar.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
