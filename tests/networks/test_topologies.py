"""Nodes, edges and poisoned agents of every topology, over many sizes."""

import networkx as nx
import numpy as np
import pytest

from bezoar import BezoarError, networks

SIZES = [2, 3, 4, 5, 6, 7, 9, 10, 13, 20]

LAST_POISONED = {
    "complete": (2, lambda n: n * (n - 1) // 2),
    "ring": (3, lambda n: n),
    "star": (2, lambda n: n - 1),
}


@pytest.mark.parametrize("name", LAST_POISONED)
@pytest.mark.parametrize("agents", SIZES)
def test_plain_topologies(name, agents):
    least, edges = LAST_POISONED[name]
    make = networks.NETWORKS[name]
    if agents < least:
        with pytest.raises(BezoarError, match=f"agents: .*at least {least}, found {agents}"):
            make(agents)
        return
    for poisoned in range(agents):
        network = make(agents, poisoned)
        assert network.name == name
        assert network.agents == agents
        assert len(network.edges) == edges(agents)
        assert network.poisoned == tuple(range(agents - poisoned, agents))


@pytest.mark.parametrize("agents", [3, 4, 7, 12])
def test_plain_topologies_are_networkxs(agents):
    for found, expected in (
        (networks.complete(agents), nx.complete_graph(agents)),
        (networks.ring(agents), nx.cycle_graph(agents)),
        (networks.star(agents), nx.star_graph(agents - 1)),
        (networks.line(agents), nx.path_graph(agents)),
    ):
        assert set(found.edges) == {tuple(sorted(edge)) for edge in expected.edges}


@pytest.mark.parametrize("half", [2, 3, 4, 5, 10, 15])
def test_two_castle(half):
    network = networks.two_castle(2 * half)
    assert network.agents == 2 * half
    assert len(network.edges) == half * (half - 1) + half * (half - 1)
    for a in range(2 * half):
        for b in range(a):
            assert ((b, a) in network.edges) == (a - b != half)
    assert network.poisoned == (half - 1,)


def test_two_castle_poisoned_by_count():
    expected = [(), (4,), (4, 5), (3, 4, 5), (3, 4, 5, 6), (2, 3, 4, 5, 6)]
    for count, poisoned in enumerate(expected):
        network = networks.two_castle(10, count)
        assert network.poisoned == poisoned
        if 0 < count <= 4:  # some regular agent hears all of them
            assert max(network.poisoned_inputs[list(network.regular)]) == count


@pytest.mark.parametrize("agents", SIZES)
def test_line(agents):
    network = networks.line(agents)
    assert network.edges == tuple((v, v + 1) for v in range(agents - 1))
    assert network.poisoned == ((agents - 1) // 2,)
    assert network.regular_is_connected == (agents <= 2)
    assert networks.line(10, 3).poisoned == (3, 4, 5)


@pytest.mark.parametrize("agents", [3, 4, 5, 10, 17])
def test_fan(agents):
    for poisoned in range(1, agents - 1):
        network = networks.fan(agents, poisoned)
        regular = agents - poisoned
        path = {(v, v + 1) for v in range(regular - 1)}
        spokes = {(v, hub) for v in range(regular) for hub in range(regular, agents)}
        assert set(network.edges) == path | spokes
        assert len(network.edges) == regular - 1 + regular * poisoned
        assert network.poisoned == tuple(range(regular, agents))


def test_fan_with_a_hub_that_is_not_poisoned():
    honest = networks.fan(6, poisoned=0)
    assert honest.edges == networks.fan(6, poisoned=1).edges
    assert honest.poisoned == ()
    named = networks.fan(6, poisoned={0, 2})
    assert named.edges == networks.fan(6, poisoned=2).edges
    assert named.poisoned == (0, 2)
    assert networks.fan(6, poisoned=[5, "5"]) == networks.fan(6, poisoned=1)


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 4), (4, 3), (5, 7)])
def test_torus(rows, columns):
    network = networks.torus(rows, columns, poisoned=2)
    assert network.agents == rows * columns
    assert len(network.edges) == 2 * rows * columns
    for row in range(rows):
        for column in range(columns):
            expected = {
                (row + 1) % rows * columns + column,
                (row - 1) % rows * columns + column,
                row * columns + (column + 1) % columns,
                row * columns + (column - 1) % columns,
            }
            assert set(network.neighbours(row * columns + column)) == expected
    assert network.poisoned == (rows * columns - 2, rows * columns - 1)


@pytest.mark.parametrize("seed", range(5))
def test_random_networks_are_connected_and_reproducible(seed):
    for make in (
        lambda seed: networks.erdos_renyi(12, 0.25, 2, seed),
        lambda seed: networks.random_regular(12, 3, 2, seed),
    ):
        network = make(seed)
        assert network.edges == make(seed).edges
        assert nx.is_connected(network.graph)
        assert network.poisoned == (10, 11)
        assert network.edges != make(seed + 100).edges


@pytest.mark.parametrize(("agents", "degree"), [(2, 1), (5, 2), (6, 3), (9, 4), (10, 9)])
def test_random_regular_degrees(agents, degree):
    network = networks.random_regular(agents, degree)
    assert network.agents == agents
    assert set(network.degrees.tolist()) == {degree}


def test_erdos_renyi_density_follows_the_probability():
    sparse = [len(networks.erdos_renyi(20, 0.3, seed=seed).edges) for seed in range(20)]
    assert 0.25 * 190 < sum(sparse) / 20 < 0.36 * 190
    assert len(networks.erdos_renyi(8, 1.0).edges) == 28


@pytest.mark.parametrize("poisoned", [{0}, [1, 1], (2, 0), frozenset({1})])
def test_poisoned_agents_can_be_named(poisoned):
    for make in (networks.complete, networks.ring, networks.star, networks.line):
        assert make(4, poisoned).poisoned == tuple(sorted(set(poisoned)))
    assert networks.two_castle(4, poisoned).poisoned == tuple(sorted(set(poisoned)))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: networks.two_castle(7), "agents: two castles need an even number, found 7"),
        (lambda: networks.two_castle(2), "agents: .*at least 4, found 2"),
        (lambda: networks.line(1), "agents: .*at least 2, found 1"),
        (lambda: networks.fan(2), "agents: .*at least 3, found 2"),
        (lambda: networks.fan(5, 4), "poisoned: a fan of 5 agents has at most 3 poisoned, found 4"),
        (lambda: networks.fan(5, -1), "poisoned: .*found -1"),
        (lambda: networks.fan(5, 1.5), r"poisoned: .*found 1\.5"),
        (lambda: networks.complete(5, 1.5), r"poisoned: .*found 1\.5"),
        (lambda: networks.complete(5, 5), r"poisoned: expected 0 … 4 of 5 agents, found 5"),
        (lambda: networks.ring(5, -2), "poisoned: .*found -2"),
        (lambda: networks.star(5, {7}), "poisoned: agent 7 is not in the network"),
        (lambda: networks.complete("5"), "agents: .*found '5'"),
        (lambda: networks.complete(True), "agents: .*found True"),
        (lambda: networks.complete(5.0), r"agents: .*found 5\.0"),
        (lambda: networks.torus(2, 5), "rows: .*at least 3, found 2"),
        (lambda: networks.torus(5, 2), "columns: .*at least 3, found 2"),
        (lambda: networks.erdos_renyi(5, 0.0), r"probability: .*found 0\.0"),
        (lambda: networks.erdos_renyi(5, 1.5), r"probability: .*found 1\.5"),
        (lambda: networks.erdos_renyi(5, "x"), "probability: expected a number .*found 'x'"),
        (lambda: networks.erdos_renyi(40, 0.001), "raise the probability; none of 100 draws"),
        (lambda: networks.erdos_renyi(40, 1e-20), "raise the probability; none of 100 draws"),
        (lambda: networks.random_regular(6, "2"), "degree: expected an integer .*found '2'"),
        (lambda: networks.random_regular(6, 2.5), r"degree: expected an integer .*found 2\.5"),
        (lambda: networks.random_regular(5, 3), "degree: .*found 3 for 5 agents"),
        (lambda: networks.random_regular(5, 5), "degree: .*found 5 for 5 agents"),
        (lambda: networks.random_regular(5, 0), "degree: .*found 0 for 5 agents"),
        (lambda: networks.random_regular(6, 1), "raise the degree; none of 100 draws"),
        (lambda: networks.lower_bound(1, 4), "regular: .*at least 2, found 1"),
        (lambda: networks.lower_bound(4, 0), "poisoned: .*at least 1, found 0"),
    ],
)
def test_refusals(make, told):
    with pytest.raises(BezoarError, match=told):
        make()


def test_create_by_name():
    assert networks.create("fan", agents=6).edges == networks.fan(6).edges
    with pytest.raises(
        BezoarError, match="network: 'two_castel' is not known; allowed: two_castle,"
    ):
        networks.create("two_castel")
    with pytest.raises(BezoarError, match="fan: no option 'agent'; allowed: agents,"):
        networks.create("fan", agent=6)
    with pytest.raises(BezoarError, match="from_file: the option 'path' must be given"):
        networks.create("from_file")


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("ring", {"agents": 10**12}, "it would have 1,000,000,000,000 agents; allowed: at most"),
        ("line", {"agents": 10**12}, "agents; allowed: at most 1,000,000"),
        ("star", {"agents": 10**12}, "agents; allowed: at most 1,000,000"),
        ("complete", {"agents": 100_000}, "100,000 agents would have 4,999,950,000 links; allowed"),
        ("two_castle", {"agents": 100_000}, "4,999,900,000 links; allowed: at most 2,000,000"),
        ("fan", {"agents": 100_000, "poisoned": 500}, "links; allowed: at most 2,000,000"),
        ("lower_bound", {"regular": 100_000}, "links; allowed: at most 2,000,000"),
        ("torus", {"rows": 10**6, "columns": 10**6}, "agents; allowed: at most 1,000,000"),
        ("erdos_renyi", {"agents": 100_000}, "2,499,975,000 links; allowed"),
        ("random_regular", {"agents": 900_000, "degree": 100}, "45,000,000 links; allowed"),
    ],
)
def test_networks_that_are_too_large_are_refused_at_once(name, options, told):
    with pytest.raises(BezoarError, match=told):
        networks.create(name, **options)


@pytest.mark.parametrize("name", ["fan", "two_castle", "line", "ring", "complete", "star"])
def test_sizes_may_be_numbers_of_numpy(name):
    make = getattr(networks, name)
    assert make(agents=np.int64(8)) == make(agents=8)
    assert make(poisoned=np.int64(2)) == make(poisoned=2)
