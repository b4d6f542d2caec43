import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
import torch
from matplotlib import pyplot as plt

from bezoar import BezoarError, aggregators, networks, report
from bezoar.training import History

NETWORKS = [
    networks.two_castle(),
    networks.line(),
    networks.fan(10, 2),
    networks.fan(10).with_poisoned(()),
    networks.lower_bound(5, 6),
    networks.star(),
    networks.torus(3, 5),
    networks.erdos_renyi(30, 0.2),
    networks.random_regular(150, 4),
    networks.lower_bound(60, 40),
    # A file may have the name of a network without being one.
    *(
        networks.Network(other.graph, other.poisoned, name=name)
        for name in ("two_castle", "line", "fan", "star", "torus", "lower_bound")
        for other in (networks.line(2), networks.star(7), networks.line(13, (4, 5)))
    ),
]


def history(seed):
    rng = np.random.default_rng(seed)
    x = np.arange(0, 50, 5)
    metrics = {"accuracy": rng.random(10), "consensus_error": np.r_[0, rng.random(9)]}
    return History(x, metrics, torch.zeros(2, 3))


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_every_agent_is_drawn_in_its_colour_apart_from_the_others(network):
    figure, axes = plt.subplots()
    report.draw_network(network, axes)
    dots = [c for c in axes.collections if isinstance(c, mpl.collections.PathCollection)]
    counts = {
        mpl.colors.to_hex(c.get_facecolor()[0]).upper(): len(c.get_offsets())
        for c in dots
        if len(c.get_offsets())
    }
    expected = {"#0072B2": len(network.regular), "#D00000": len(network.poisoned)}
    assert counts == {colour: count for colour, count in expected.items() if count}
    places = np.concatenate([c.get_offsets() for c in dots if len(c.get_offsets())])
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert distances[~np.eye(len(places), dtype=bool)].min() > 1e-3
    plt.close(figure)


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_a_picture_is_saved_whole_and_the_same_twice(tmp_path, ending):
    panels = [
        report.Panel("Fan", (report.Curve("ios", (history(0),)),), networks.fan()),
        report.Panel("Line", (report.Curve("mine", (history(1),)),), networks.line()),
    ]
    metrics = ("accuracy", "consensus_error")
    first, second = (
        report.panels_figure(tmp_path / f"{name}.{ending}", panels, metrics)[0].read_bytes()
        for name in "ab"
    )
    assert len(first) > 5000
    assert first == second
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a.{ending}", f"b.{ending}"]


def test_drawing_leaves_matplotlib_as_it_was(tmp_path):
    before = mpl.rcParams["axes.grid"], mpl.get_backend()
    report.network_figure(tmp_path / "n.png", networks.fan())
    assert (mpl.rcParams["axes.grid"], mpl.get_backend()) == before
    assert plt.get_fignums() == []


def test_a_partition_is_drawn(tmp_path):
    counts = np.arange(40).reshape(4, 10)
    assert report.partition_figure(tmp_path / "h.png", counts, poisoned=[2]).stat().st_size > 5000


def test_a_partition_with_nearly_equal_counts_looks_even(tmp_path):
    counts = np.full((4, 10), 500)
    counts[1, 3] = 450
    picture = mpl.image.imread(report.partition_figure(tmp_path / "h.png", counts))
    darkest = np.abs(picture[..., :3] - mpl.colormaps["cividis"](0.0)[:3]).max(-1) < 0.02
    held = darkest[:, : 3 * picture.shape[1] // 4]  # without the bar of colours
    assert not held.any()


def test_iterations_are_whole_numbers():
    figure, axes = plt.subplots()
    x = np.array([0, 1, 2, 3])
    few = History(x, {"accuracy": x / 4}, torch.zeros(2, 3))
    panel = report.Panel("Fan", (report.Curve("ios", (few,)),), networks.fan())
    report.plot_curves(axes, panel.curves, "accuracy", [panel])
    assert all(tick == int(tick) for tick in axes.get_xticks())
    plt.close(figure)


def test_every_rule_has_a_look_of_its_own():
    looks = [report.look(name) for name in aggregators.AGGREGATORS]
    for name, look in zip(aggregators.AGGREGATORS, looks, strict=True):
        assert look.label == aggregators.AGGREGATORS[name].label
    assert len({look.colour for look in looks}) == len(looks)
    assert len({look.marker for look in looks}) == len(looks)


def test_a_rule_of_the_users_own_always_looks_the_same():
    looks = [report.look(f"mine.py:Rule{place}") for place in range(40)]
    assert looks == [report.look(f"mine.py:Rule{place}") for place in range(40)]
    assert [look.label for look in looks] == [f"mine.py:Rule{place}" for place in range(40)]
    assert len({(look.colour, look.marker) for look in looks}) > 10
    ours = {report.look(name).colour for name in aggregators.AGGREGATORS}
    assert not ours & {look.colour for look in looks}


def test_a_registered_rule_brings_its_own_look_and_passes_none_on(monkeypatch):
    class Mine(aggregators.IOS):
        label = "My rule"
        colour = "#123456"
        marker = "8"

    class Other(Mine):
        pass

    for rule in (Mine, Other):
        monkeypatch.setitem(aggregators.AGGREGATORS, rule.__name__, rule)
    assert report.look("Mine") == report.Look("Mine", "My rule", "#123456", "8")
    assert report.look("Other").label == "Other"
    assert report.look("Other").colour not in ("#123456", aggregators.IOS.colour)
    monkeypatch.setattr(Mine, "colour", "red")
    with pytest.raises(BezoarError, match="Mine: colour: expected one such as '#0072B2', found 'r"):
        report.look("Mine")
    monkeypatch.setattr(Mine, "colour", "#123456")
    monkeypatch.setattr(Mine, "marker", "square")
    with pytest.raises(BezoarError, match=r"Mine: marker: expected one such as 'o' or .*'square'"):
        report.look("Mine")


def test_a_picture_of_another_kind_is_refused(tmp_path):
    with pytest.raises(BezoarError, match=r"ends in .png, .pdf, .svg, found '.*fan.jpg'"):
        report.network_figure(tmp_path / "fan.jpg", networks.fan())


def test_a_picture_is_not_saved_over_a_folder(tmp_path):
    (tmp_path / "fan.png").mkdir()
    with pytest.raises(
        BezoarError, match=r"plot: expected a file to write, found the folder .*fan"
    ):
        report.check_picture(tmp_path / "fan.png")


def test_dollar_signs_in_names_begin_no_formula(tmp_path):
    odd = "US$ a_{b A$"
    network = networks.Network(nx.path_graph([f"{odd}{agent}" for agent in range(3)]), name=odd)
    panel = report.Panel(odd, (report.Curve(odd, (history(0),)),), network)
    report.panels_figure(tmp_path / "a.svg", [panel], title=odd)
    report.network_figure(tmp_path / "b.svg", network)
    report.partition_figure(tmp_path / "c.svg", np.ones((3, 2), int), [1], network.names)
