from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

from bezoar import paper, theory
from bezoar.paper._figures import contamination_figure, lower_bound_figure
from bezoar.report import _figures


@pytest.fixture
def drawn(monkeypatch):
    """The texts and colours of a picture, taken when it is saved."""
    seen = []

    def save(figure, path):
        for axes in figure.axes:
            dots = [c for c in axes.collections if isinstance(c, mpl.collections.PathCollection)]
            colours = {mpl.colors.to_hex(c.get_facecolor()[0]).upper(): len(c.get_offsets())
                       for c in dots if len(c.get_offsets())}  # fmt: skip
            seen.append((axes.get_title(), [text.get_text() for text in axes.texts], colours))

    monkeypatch.setattr(_figures, "_save", save)
    return seen


@pytest.mark.parametrize(("R", "P"), [(4, 4), (6, 5)])
def test_figure_9_writes_the_labels_of_both_instances(drawn, R, P):
    instances = theory.lower_bound_instances(R, P)
    lower_bound_figure(Path("fig9.png"), instances)
    for instance, (title, texts, colours) in enumerate(drawn):
        assert title == f"Instance {instance + 1}"
        assert texts == [str(label) for label in instances.labels[instance]]
        assert colours == {"#0072B2": R, "#D00000": P}
    assert len(drawn) == 2


def test_pictures_are_saved_and_nothing_is_left_open(tmp_path):
    found = [
        paper.LearningError(rule, 0.25, rate, (rate**2, 0.1))
        for rate in (0.1, 0.2)
        for rule in ("weighted_mean", "faba")
    ]
    study = paper.ContaminationStudy(tuple(found), tuple(found))
    for [path] in (
        contamination_figure(tmp_path / "new" / "study.png", study),
        lower_bound_figure(tmp_path / "fig9.svg", theory.lower_bound_instances(4, 4)),
    ):
        assert path.stat().st_size > 5000
    assert plt.get_fignums() == []


def test_the_titles_of_the_lower_bounds_instances_are_whole(tmp_path):
    [path, _] = lower_bound_figure(tmp_path / "fig9", theory.lower_bound_instances(4, 4))
    assert plt.imread(path)[0].min() == 1  # the first line is white
