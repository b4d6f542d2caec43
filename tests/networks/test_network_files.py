"""Networks from files."""

import json

import networkx as nx
import pytest

from bezoar import BezoarError, networks

EDGES = ((0, 1), (0, 2), (1, 2), (2, 3))


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_graphml(tmp_path):
    network = networks.fan(7, poisoned=2)
    path = tmp_path / "fan7.graphml"
    nx.write_graphml(network.graph, path)
    found = networks.from_file(path)
    assert found.edges == network.edges
    assert found.poisoned == network.poisoned
    assert found.name == "fan7"


def test_graphml_labels_of_other_tools(tmp_path):
    path = tmp_path / "net.graphml"
    nx.write_graphml(nx.path_graph(["n0", "n1", "n2"]), path)
    assert networks.from_file(str(path), poisoned=[1]).edges == ((0, 1), (1, 2))


def test_directed_graphml_is_taken_as_undirected(tmp_path):
    path = tmp_path / "net.graphml"
    nx.write_graphml(nx.DiGraph([(0, 1), (1, 0), (2, 1)]), path)
    assert networks.from_file(path).edges == ((0, 1), (1, 2))


@pytest.mark.parametrize("ending", ["edges", "edgelist", "txt", "csv", "CSV"])
@pytest.mark.parametrize(
    "text",
    [
        "0 1\n0 2\n1 2\n2 3\n",
        "0,1\n0, 2\n1 ,2\n2,3",
        "# four agents\n0\t1\n\n2 0 # back\n1 2\n3 2\n",
    ],
)
def test_edge_lists(tmp_path, ending, text):
    network = networks.from_file(write(tmp_path / f"net.{ending}", text))
    assert network.edges == EDGES
    assert network.poisoned == ()


def test_json_with_neighbours(tmp_path):
    document = {"neighbours": [[1, 2], [0, 2], [0, 1, 3], [2]], "poisoned": [3]}
    path = write(tmp_path / "net.json", json.dumps(document))
    assert networks.from_file(path).edges == EDGES
    assert networks.from_file(path).poisoned == (3,)
    del document["poisoned"]
    write(path, json.dumps(document))
    assert networks.from_file(path).poisoned == ()


def test_json_of_networkx(tmp_path):
    network = networks.two_castle(6)
    path = write(tmp_path / "net.json", json.dumps(nx.adjacency_data(network.graph)))
    found = networks.from_file(path)
    assert found.edges == network.edges
    assert found.poisoned == network.poisoned


def test_given_poisoned_agents_replace_the_files(tmp_path):
    path = write(tmp_path / "net.json", '{"neighbours": [[1], [0, 2], [1]], "poisoned": [0]}')
    assert networks.from_file(path, poisoned={2}).poisoned == (2,)
    assert networks.from_file(path, poisoned=[]).poisoned == ()


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("net.edges", "0 1\n1 2 0.5\n", "line 2: expected two agents, found '1 2 0.5'"),
        ("net.csv", "0,1\n2\n", "line 2: expected two agents, found '2'"),
        ("net.txt", "0 1\n1 b\n", "found 'b'"),
        ("net.txt", "0 1\n2 3\n", "2 unconnected pieces"),
        ("net.txt", "", "no agents"),
        ("net.json", "{", "not a valid .json file"),
        ("net.json", "[[1], [0]]", "needs the key 'neighbours' or 'adjacency'"),
        ("net.json", '{"neighbors": [[1], [0]]}', "needs the key 'neighbours' or 'adjacency'"),
        ("net.json", '{"neighbours": 3}', "not a valid .json file"),
        ("net.json", '{"neighbours": [1, 0]}', "not a valid .json file"),
        ("net.json", '{"neighbours": [[1], [5]]}', "found 5"),
        ("net.json", '{"neighbours": [[1], [0]], "poisoned": [7]}', "agent 7"),
        ("net.json", '{"neighbours": [[1], [0]], "poisoned": null}', "poisoned"),
        ("net.json", '{"adjacency": [[1], [0]]}', "not a valid .json file"),
        ("net.graphml", "<graphml>", "not a valid .graphml file"),
        ("net.graphml", "hello", "not a valid .graphml file"),
    ],
)
def test_malformed_files_are_named_with_the_cause(tmp_path, name, text, cause):
    path = write(tmp_path / name, text)
    with pytest.raises(BezoarError) as refused:
        networks.from_file(path)
    assert cause in str(refused.value)
    assert name in str(refused.value)


def test_text_that_is_no_text(tmp_path):
    path = tmp_path / "net.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BezoarError, match=r"net\.json is not a valid \.json file"):
        networks.from_file(path)


@pytest.mark.parametrize("name", ["missing.json", "missing.graphml", "missing.csv"])
def test_files_that_are_not_there(tmp_path, name):
    with pytest.raises(BezoarError, match=f"cannot read .*{name}: No such file"):
        networks.from_file(tmp_path / name)


def test_a_directory_is_no_file(tmp_path):
    (tmp_path / "net.json").mkdir()
    with pytest.raises(BezoarError, match=r"cannot read .*net\.json"):
        networks.from_file(tmp_path / "net.json")


@pytest.mark.parametrize(
    ("name", "nearest"), [("net.graphm", ".graphml"), ("net.jsn", ".json"), ("net", "")]
)
def test_unknown_endings_list_the_known_ones(tmp_path, name, nearest):
    with pytest.raises(BezoarError, match=f"ending: .* is not known; allowed: {nearest}"):
        networks.from_file(write(tmp_path / name, "0 1"))
