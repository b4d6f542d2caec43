"""Drawings of networks: agents where their coordinates say, apart from each other, with names."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from scipy.spatial.distance import pdist

from bezoar import Network, networks
from bezoar.report import draw_network, network_figure, pictures
from bezoar.report._layouts import agent_positions, spread
from bezoar.report._networks import DRAWN, WIDTH, _overlap, drawing

WARDS = ["Reception", "Ward 1", "Intensive care", "Pharmacy", "Laboratory", "Blood bank", "IT"]


def hospital(agents=20):
    graph = nx.connected_watts_strogatz_graph(agents, 4, 0.3, seed=2)
    names = {agent: f"{WARDS[agent % 7]} {agent}" for agent in graph}
    return Network(nx.relabel_nodes(graph, names), list(names.values())[:2], name="hospital")


def test_agents_are_drawn_where_their_coordinates_say():
    graph = nx.random_geometric_graph(30, 0.5, seed=1)
    network = Network(graph)
    expected = np.array([graph.nodes[agent]["pos"] for agent in range(30)])
    assert np.array_equal(agent_positions(network), expected)
    places = np.array(drawing(network)["places"])
    scale = np.ptp(places[:, 0]) / np.ptp(expected[:, 0])
    assert np.allclose(pdist(places), scale * pdist(expected))
    assert (np.argsort(places[:, 1]) == np.argsort(-expected[:, 1])).all()  # y downwards


@pytest.mark.parametrize(
    "graph",
    [
        nx.star_graph(30),
        nx.barabasi_albert_graph(200, 2, seed=1),
        nx.connected_watts_strogatz_graph(60, 4, 0.1, seed=0),
        nx.complete_bipartite_graph(2, 40),
        nx.balanced_tree(3, 4),
    ],
    ids=["star", "scale-free", "small world", "bipartite", "tree"],
)
def test_hardly_any_agents_overlap(graph):
    network = Network(graph)
    drawn = drawing(network)
    distances = pdist(np.array(drawn["places"]))
    assert (distances < 1.6 * drawn["radius"]).sum() <= 0.02 * network.agents
    assert distances.min() > 1


def test_points_on_top_of_each_other_are_moved_apart():
    moved = spread(np.zeros((20, 2)), 0.1)
    assert pdist(moved).min() > 0.05
    assert np.array_equal(moved, spread(np.zeros((20, 2)), 0.1))


def test_names_are_beside_their_agents_and_do_not_cover_each_other():
    network = hospital()
    drawn = drawing(network)
    assert [name.text for name in drawn["names"]] == list(network.names)
    boxes = [
        (x + name.right, y + name.down, 5.8 * len(name.text), 10.0)
        for name, (x, y) in zip(drawn["names"], drawn["places"], strict=True)
    ]
    covered = [_overlap(one, other) for one, other in combinations(boxes, 2)]
    assert sum(area > 20 for area in covered) <= 2
    for name, box in zip(drawn["names"], boxes, strict=True):
        assert np.hypot(name.right, name.down) < 70
        assert 0 <= box[0] <= WIDTH


def test_short_names_are_inside_long_ones_are_cut():
    assert all(name.inside for name in drawing(networks.fan())["names"])
    long = Network(nx.path_graph(["a" * 40, "b"]))
    assert drawing(long)["names"][0].text == "a" * 17 + "…"
    assert len(drawing(hospital(100))["names"]) == 2  # of the poisoned alone


@pytest.mark.parametrize("agents", [10, 20, 60, 120])
@pytest.mark.parametrize("make", [networks.fan, networks.two_castle, networks.random_regular])
def test_numbers_stay_inside_their_dots(make, agents):
    """Wherever they are written into dots at all, corners included, and can be read."""
    network = make(agents=agents)
    with pictures() as plt:
        figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
        draw_network(network, axes)
        figure.draw_without_rendering()
        dots = next(each for each in axes.collections if isinstance(each, PathCollection))
        diameter = np.sqrt(dots.get_sizes()[0]) * figure.dpi / 72
        inside = [text for text in axes.texts if text.get_color() == "white"]
        for text in inside:
            box = text.get_window_extent()
            # The box has room for letters that hang below the line; digits do not.
            assert np.hypot(box.width, 0.75 * box.height) <= diameter, text.get_text()
            assert text.get_size() >= 5.5
    assert bool(inside) == (agents <= 20 or (agents == 60 and make is networks.random_regular))
    drawn = drawing(network)
    for name in (name for name in drawn["names"] if name.inside):
        width, height = 0.6 * name.size * len(name.text), 0.73 * name.size
        assert np.hypot(width, height) <= 2 * drawn["radius"]


def test_a_picture_has_the_names(tmp_path):
    with pictures() as plt:
        axes = plt.subplots()[1]
        draw_network(hospital(), axes)
        assert [text.get_text() for text in axes.texts] == list(hospital().names)
    assert network_figure(tmp_path / "net.png", hospital()).stat().st_size > 10_000


def test_degrees_of_a_large_network_are_whole_numbers():
    network = Network(nx.random_regular_graph(4, DRAWN + 100, seed=0), range(50))
    with pictures() as plt:
        figure, axes = plt.subplots()
        draw_network(network, axes)
        below = axes.child_axes[-1]
        assert below.get_xlabel() == "neighbours of an agent"
        assert all(tick == int(tick) for tick in below.get_xticks())
        assert below.get_ylim()[0] < 1
        plt.close(figure)


def test_a_large_network_is_a_picture_of_its_density():
    network = Network(nx.random_regular_graph(6, 2000, seed=0), range(0, 2000, 100))
    image = drawing(network)["image"]
    assert image.startswith("data:image/png;base64,")
    assert len(image) < 600_000
    assert drawing(Network(nx.cycle_graph(DRAWN)))["image"] == ""
