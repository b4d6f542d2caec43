import matplotlib as mpl
import numpy as np
import pytest

from bezoar.report import _figures


@pytest.fixture
def drawn(monkeypatch):
    """The figures as they are when they are saved, once a figure, laid out."""
    seen = []

    def save(figure, path):
        if path.suffix == ".png":
            figure.canvas.draw()
            seen.append(_look_at(figure))

    monkeypatch.setattr(_figures, "_save", save)
    return seen


def _look_at(figure):
    """Plots by title and label, the legend's names, the texts' boxes in pixels."""
    renderer = figure.canvas.get_renderer()
    texts = [
        text
        for text in figure.findobj(mpl.text.Text)
        if text.get_visible() and text.get_text().strip() and text.get_alpha() != 0
    ]
    # The numbers in a network's agents lie on each other on purpose where agents do.
    numbers = {text for axes in figure.axes for text in axes.texts if text.get_text().isdigit()}
    boxes = [
        (text.get_text(), text.get_window_extent(renderer))
        for text in texts
        if text not in numbers and _is_shown(text, figure)
    ]
    legends = [*figure.legends, *(a.get_legend() for a in figure.axes if a.get_legend())]
    return {
        "axes": [
            {
                "title": axes.get_title(),
                "ylabel": axes.get_ylabel(),
                "yscale": axes.get_yscale(),
                "xlim": axes.get_xlim(),
                "ylim": axes.get_ylim(),
                "lines": [np.asarray(line.get_ydata()) for line in axes.lines],
                "bands": len([c for c in axes.collections if _is_band(c)]),
                "ranges": [
                    (c.get_paths()[0].vertices[:, 1].min(), c.get_paths()[0].vertices[:, 1].max())
                    for c in axes.collections
                    if _is_band(c)
                ],
            }
            for axes in figure.axes
        ],
        "legend": [text.get_text() for legend in legends for text in legend.get_texts()],
        "title": figure.get_suptitle(),
        "boxes": boxes,
        "frame": figure.bbox,
    }


def _is_band(collection):
    return isinstance(collection, mpl.collections.FillBetweenPolyCollection)


def _is_shown(text, figure):
    """Ticks that are outside of their axis keep texts that are never drawn."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            for minor in (False, True):
                ticks = axis.get_minor_ticks() if minor else axis.get_major_ticks()
                for tick in ticks:
                    if text in (tick.label1, tick.label2):
                        low, high = sorted(axis.get_view_interval())
                        return low <= tick.get_loc() <= high
    return True
