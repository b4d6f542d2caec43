"""Networks of one's own in specs: files, links, graphs, and where poisoned agents sit."""

import networkx as nx
import pytest
import torch

from bezoar import BezoarError, Network, aggregators, attacks, networks, theory, training
from bezoar.experiments import RunSpec, expand, network_of, read_poisoned, run_key
from bezoar.experiments._choice import FILES

OFFICE = """source,target
reception,server-1
server-1,server-2
server-2,lab
lab,reception
"""


@pytest.fixture
def office(tmp_path):
    path = tmp_path / "office.csv"
    path.write_text(OFFICE)
    return path


def test_the_endings_of_network_files_are_those_that_are_read():
    assert FILES["network"] == ("from_file", tuple(networks.READERS))


def test_a_file_is_one_run_however_it_is_spelled(office, tmp_path):
    spellings = [
        str(office),
        office,
        f"from_file:path={office}",
        f"{office}:symmetric=false",
        {"name": "from_file", "path": str(office)},
    ]
    specs = [RunSpec.read({"network": each, "poisoned": 1}) for each in spellings]
    specs.append(RunSpec.read({"network": "office.csv", "poisoned": 1}, tmp_path))
    assert len({run_key(spec) for spec in specs}) == 1
    assert {str(spec.network) for spec in specs} == {str(office)}
    loose = RunSpec.read({"network": f"{office}:symmetric=true"})
    assert str(loose.network) == f"{office}:symmetric=true"
    assert RunSpec.recall(loose.document(), loose.texts()) == loose


@pytest.mark.parametrize(
    ("network", "told"),
    [
        ("from_file:path=5", "network file ending: '' is not known; allowed: .graphml"),
        ({"name": "from_file", "path": 5}, "path: expected "),
        ("ring:agents=1000000000000", "network ring: it would have 1,000,000,000,000 agents"),
        ("complete:agents=100000", "network complete: 100,000 agents would have"),
        ("fan:agents=10,agents=12", "network fan: agents is given twice"),
        ("office.csv:path=a.csv", "path is given twice"),
        ({"edge": [["a", "b"]]}, "network: expected a table with a name"),
        ({"edges": [["a", "b", "c"]]}, "edges: expected"),
        ({"edges": 3}, "edges: expected a list|valid sequence"),
        ({"edges": [["a", "b"], ["c", "d"]]}, r"2 unconnected pieces: \(a, b\) and \(c, d\)"),
        ([(0, 1)], "network: expected a name"),
        (nx.Graph([("a", "b"), ("c", "d")]), "2 unconnected pieces"),
    ],
)
def test_refused_networks(network, told):
    with pytest.raises(BezoarError, match=told):
        network_of(RunSpec.read({"network": network}))


def test_links_written_out_in_a_spec():
    spec = RunSpec.read({"network": {"edges": [["a", "b"], ["b", "c"]]}, "poisoned": ["c"]})
    assert network_of(spec).names == ("a", "b", "c")
    assert network_of(spec).poisoned == (2,)
    assert str(spec.network) == "from_edges:edges=[['a', 'b'], ['b', 'c']]"
    assert RunSpec.recall(spec.document(), spec.texts()) == spec
    named = {"network": {"name": "from_edges", "edges": [["a", "b"], ["b", "c"]]}}
    assert run_key(RunSpec.read({**named, "poisoned": ["c"]})) == run_key(spec)
    inside = {"network": {"edges": [["a", "b"], ["b", "c"]], "poisoned": ["c"]}}
    assert run_key(RunSpec.read(inside)) == run_key(spec)
    long = RunSpec.read({"network": {"edges": [[n, n + 1] for n in range(30)]}})
    assert str(long.network) == "from_edges:edges=[30 items]"


def test_links_are_swept_as_a_whole():
    one, other = [[0, 1], [1, 2]], [[0, 1], [1, 2], [0, 2]]
    [spec] = expand({"network": {"edges": one}})
    assert len(network_of(spec).edges) == 2
    both = expand({"network": {"edges": [one, other]}, "poisoned": [[], ["1"]]})
    assert [len(network_of(spec).edges) for spec in both] == [2, 2, 3, 3]
    assert [network_of(spec).poisoned for spec in both] == [(), (1,), (), (1,)]


def test_a_networkx_graph_is_a_network():
    graph = nx.cycle_graph(["a", "b", "c", "d"])
    graph.nodes["b"]["poisoned"] = True
    network = network_of(RunSpec.read({"network": graph}))
    assert network == Network(graph)
    assert network.poisoned == (1,)
    assert network_of(RunSpec.read({"network": graph, "poisoned": 2})).poisoned == (2, 3)


def test_a_networkx_graph_is_a_network_to_rules_and_theory():
    graph = nx.cycle_graph(["a", "b", "c", "d", "e"])
    graph.nodes["b"]["poisoned"] = True
    network = Network(graph)
    rule, messages = aggregators.create("faba"), torch.randn(5, 3)
    assert torch.equal(rule(messages, graph), rule(messages, network))
    assert training.Run(graph, rule, attacks.create("label_flip")).network == network
    for found in (theory.contamination, theory.connectivity, theory.mixing_gap, theory.overview):
        assert found(graph) == found(network)
    for worst in (theory.worst_contamination, theory.worst_connectivity):
        assert worst(graph, 1) == worst(network, 1)


def test_a_function_may_return_a_networkx_graph(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import networkx\n\ndef wards(rooms: int = 4):\n    return networkx.cycle_graph(rooms)\n"
    )
    network = network_of(RunSpec.read({"network": f"{path}:wards:rooms=6", "poisoned": 2}))
    assert network.agents == 6
    assert network.poisoned == (4, 5)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2", 2),
        ("0", 0),
        ("none", ()),
        ("none,", ("none",)),
        ("3,", (3,)),
        ("3,5", (3, 5)),
        ("ward-7", ("ward-7",)),
        ("ward-7, Ward 8", ("ward-7", "Ward 8")),
        ('"Smith, J.",Jones', ("Smith, J.", "Jones")),
        ("007,", ("007",)),
        (f"{'9' * 5000},", ("9" * 5000,)),
    ],
)
def test_who_is_poisoned_as_it_is_typed(text, found):
    assert read_poisoned(text) == found


@pytest.mark.parametrize("text", [",", "", " ", ",,", "1,,2", "-1", "1.5", "-1.5e3"])
def test_refused_texts(text):
    with pytest.raises(BezoarError, match="poisoned: expected a number of agents such as 2, names"):
        read_poisoned(text)


def test_agents_are_called_by_their_names(office):
    spec = RunSpec.read({"network": office, "poisoned": ["lab", "reception"]})
    assert network_of(spec).poisoned == (0, 3)
    assert RunSpec.read({"network": office, "poisoned": "reception,lab"}) == spec
    assert RunSpec.recall(spec.document(), spec.texts()) == spec
    with pytest.raises(BezoarError, match=r"agent labb is not in the network; allowed: lab"):
        network_of(RunSpec.read({"network": office, "poisoned": "labb"}))


def test_numbers_are_names_too(tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("1 2\n2 3\n")
    for poisoned in ([3], ["3"], "3,"):
        assert network_of(RunSpec.read({"network": path, "poisoned": poisoned})).poisoned == (2,)
    with pytest.raises(BezoarError, match="agent 0 is not in the network; allowed: 1, 2, 3"):
        network_of(RunSpec.read({"network": path, "poisoned": [0]}))


def test_a_number_of_agents_is_placed(office):
    def poisoned(**fields):
        return network_of(RunSpec.read({"network": office, **fields})).poisoned

    assert poisoned(poisoned=2) == (2, 3)
    assert poisoned(poisoned=2, placement="cut") == (1, 3)
    assert poisoned(poisoned=2, placement="degree") == (0, 1)
    with pytest.raises(BezoarError, match=r"placement: 'degree' says .* but nobody is poisoned"):
        poisoned(placement="degree")  # the file marks nobody
    assert network_of(RunSpec.read({"network": "star", "placement": "degree"})).poisoned == (0,)
    seeds = {poisoned(poisoned=1, placement="random", seed=seed) for seed in range(9)}
    assert len(seeds) > 1
    fan = RunSpec.read({"network": "fan", "placement": "last", "poisoned": 2})
    assert network_of(fan).edges == networks.fan(poisoned=2).edges


def test_a_runs_key_is_about_who_is_poisoned_not_how_they_were_found(office):
    named = RunSpec.read({"network": office, "poisoned": ["server-1", "lab"]})
    placed = RunSpec.read({"network": office, "poisoned": 2, "placement": "cut"})
    assert run_key(named) == run_key(placed)
    assert run_key(placed) != run_key(RunSpec.read({"network": office, "poisoned": 2}))


def test_refused_placements(office):
    with pytest.raises(BezoarError, match="placement: 'wrost' is not known; allowed: worst"):
        RunSpec.read({"placement": "wrost"})
    spec = RunSpec.read({"network": office, "poisoned": ["lab"], "placement": "worst"})
    with pytest.raises(BezoarError, match=r"placement: 'worst' says where .* names them: lab"):
        network_of(spec)
    clean = RunSpec.read({"network": office, "poisoned": [], "placement": "worst"})
    assert network_of(clean).poisoned == ()
