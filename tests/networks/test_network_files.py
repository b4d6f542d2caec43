"""Networks from files: 59 that people might have, and everything networkx writes."""

import json
from contextlib import suppress
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezoar import BezoarError, networks
from bezoar.networks import Network
from bezoar.networks._edge_lists import read_edge_list

FILES = Path(__file__).parent / "files"

#: Links, names in the order of their numbers, poisoned agents, and whether places are known.
READ = {
    "office.graphml": (4, "reception server-1 server-2 lab", "server-1", True),
    "key-default.graphml": (2, "n0 n1 n2", "n1", False),
    "marked-yes.graphml": (2, "1 2 3", "2", False),
    "one-and-n1.graphml": (2, "1 n1 n2", "", False),
    "directed-both-ways.graphml": (2, "a b c", "", False),
    "yed.graphml": (2, "Ward_7 Pharmacy Radiology", "", True),
    "no-namespace.graphml": (2, "0 1 2", "", False),
    "gephi.gexf": (2, "Ada Bob Cyd", "Bob", True),
    "old.gexf": (3, "10 20 30", "", False),
    "wards.gml": (2, "Ward_1 Ward_2 Küche", "Ward_2", True),
    "from-seven.gml": (2, "7 9 8", "", False),
    "plain.edges": (4, "0 1 2 3", "", False),
    "networkx.edgelist": (3, "0 1 2", "", False),
    "from-one.txt": (3, "1 2 3 4", "", False),
    "both-directions.txt": (2, "a b c", "", False),
    "konect.tsv": (3, "1 2 3", "", False),
    "header.csv": (2, "ward-1 ward-2 ward-3", "", False),
    "excel.csv": (2, "München Köln Bonn", "", False),
    "excel-unicode.txt": (2, "Zürich Bern Genève", "", False),
    "gephi-edges.csv": (2, "1 2 3", "", False),
    "quoted.csv": (2, 'Smith,_J. Jones O"Neil', "", False),
    "node-link.json": (2, "n1 1 n2", "n1", False),
    "node-link-edges.json": (1, "0 1", "", True),
    "adjacency-data.json": (2, "a b c", "b", False),
    "dict-of-lists.json": (2, "alice bob carol", "bob", False),
    "neighbours.json": (2, "0 1 2", "2", False),
    "edges.json": (2, "a b c", "c", False),
    "geo.json": (1, "Bern Basel", "", True),
}

#: What is said of files that are refused, or taken with ``symmetric``.
SYMMETRIC = {
    "directed.graphml": "1 one-way link (west → hub)",
    "weights.graphml": "weights from 0.5 to 2 (b – c)",
    "weight-default.graphml": "weights from 1 to 2 (a – b)",
    "parallel.gexf": "1 repeated link (a – b)",
    "mixed-directions.gexf": "1 one-way link (b → c)",
    "repeated.gml": "1 repeated link (a – b)",
    "networkx-weights.edgelist": "weights from 1.5 to 3 (0 – 1)",
    "weights-last.edgelist": "weights from 1 to 2 (a – b)",
    "asymmetric.txt": "1 one-way link (b → c)",
    "self-loop.txt": "1 link of an agent to itself (a)",
    "gephi-directed.csv": "2 one-way links (1 → 2)",
    "weights.csv": "weights from 0.5 to 0.7 (b – c)",
    "asymmetric.json": "1 one-way link (a → c)",
}

#: What is said of files that are refused in any case.
REFUSED = {
    "misspelled.graphml": "attribute 'poisend'; did you mean 'poisoned'",
    "maybe.graphml": "poisoned at agent a: expected true or false, found 'perhaps'",
    "unknown-end.graphml": "no node is called 'wrad-1'; nodes are ward-1",
    "same-id.graphml": "two nodes have the id 'a'",
    "billion-laughs.graphml": "it declares the entity 'a'; write out what it stands for",
    "broken.gml": "it is not valid GML",
    "two-parts.txt": "2 unconnected pieces: (a, b, c) and (x, y). Every agent must reach",
    "latin.csv": "line 2: it is not UTF-8 text; save it as UTF-8",
    "gephi-nodes.csv": "a list of nodes; expected a list of links",
    "weight-text.csv": "line 1: expected a weight in the third column, found 'strong'",
    "matrix.csv": "line 1: expected two agents, and perhaps a weight; found '0, 1, 1, 0'",
    "poisoned-column.csv": "a list of links cannot say who is poisoned; name them with --poisoned",
    "missing-end.csv": "line 3: expected two agents, found an empty name",
    "empty.csv": "it has no agents",
    "neighbors-null.json": "neighbours: expected each agent's neighbours, found null",
    "twice.json": "the key 'a' is there twice",
    "unknown-key.json": "no key 'posioned'; allowed: poisoned",
    "collapsing.json": "two nodes have the id '1'",
}


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_every_file_is_in_one_of_the_tables():
    assert {path.name for path in FILES.iterdir()} == {*READ, *SYMMETRIC, *REFUSED}
    assert len(READ) + len(SYMMETRIC) + len(REFUSED) == 59


@pytest.mark.parametrize("file", READ)
def test_files_that_are_read(file):
    links, names, poisoned, has_places = READ[file]
    network = networks.from_file(FILES / file)
    assert len(network.edges) == links
    assert network.names == tuple(name.replace("_", " ") for name in names.split())
    assert (
        network.named(network.poisoned) == poisoned.replace("_", " ").split(",")[: bool(poisoned)]
    )
    assert (network.positions is not None) == has_places
    assert network.name == Path(file).stem
    assert network.note == ""


@pytest.mark.parametrize("file", SYMMETRIC)
def test_files_that_are_taken_with_a_note(file):
    with pytest.raises(BezoarError) as refused:
        networks.from_file(FILES / file)
    assert str(refused.value).startswith(f"network file: {FILES / file}: graph: it has ")
    assert f"{SYMMETRIC[file]}. A network" in str(refused.value)
    assert "say symmetric=true" in str(refused.value)
    network = networks.from_file(FILES / file, symmetric=True)
    assert network.note == f"taken as symmetric and without weights: it had {SYMMETRIC[file]}"


@pytest.mark.parametrize("file", REFUSED)
def test_files_that_are_refused_with_what_to_change(file):
    with pytest.raises(BezoarError) as refused:
        networks.from_file(FILES / file, symmetric=True)
    assert str(refused.value).startswith(f"network file: {FILES / file}: ")
    assert REFUSED[file] in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("net.json", "{", "not a valid .json file"),
        ("net.json", "[[1], [0]]", 'the neighbours of each agent {"a": ["b", "c"], …}'),
        ("net.json", "[" * 100_000, "not a valid .json file"),
        ("net.json", '{"neighbours": 3}', "neighbours: expected each agent's neighbours, found 3"),
        ("net.json", '{"neighbours": [1, 0]}', "neighbours of 0: expected a list, found 1"),
        ("net.json", '{"neighbours": [[1], [5]]}', "no node is called '5'"),
        (
            "net.json",
            '{"neighbours": [[true], [0]]}',
            "neighbours of 0: expected agents, found true",
        ),
        ("net.json", '{"edges": [["a"]]}', 'links: expected pairs of agents, .*found ["a"]'),
        ("net.json", '{"edges": [["a", null]]}', 'links: expected pairs of agents, .*["a", null]'),
        ("net.json", '{"edges": [["a", NaN]]}', 'links: expected pairs of agents, .*["a", NaN]'),
        ("net.json", '{"nodes": [{}], "links": []}', "nodes: expected an id for every node"),
        ("net.json", '{"nodes": [{"id": 1}]}', "links: expected a list, found null"),
        ("net.json", '{"nodes": [1], "adjacency": []}', "adjacency: expected 1 lists, found 0"),
        ("net.json", '{"edges": [["a", "b"]], "poisoned": ["c"]}', "poisoned: agent c is not in"),
        ("net.json", '{"edges": [["a", "b"]], "poisoned": null}', "poisoned: expected a list"),
        ("net.graphml", "<graphml>", "not a valid .graphml file"),
        ("net.graphml", "<graphml/>", "expected one graph in it, found 0"),
        ("net.graphml", "hello", "not a valid .graphml file"),
        ("net.gexf", "<gexf><graph><nodes><node/></nodes></graph></gexf>", "a node has no id"),
        ("net.txt", "", "no agents"),
    ],
)
def test_malformed_files_are_named_with_the_cause(tmp_path, name, text, cause):
    path = write(tmp_path / name, text)
    with pytest.raises(BezoarError) as refused:
        networks.from_file(path)
    assert str(refused.value).startswith(f"network file: {path}")
    assert all(part in str(refused.value) for part in cause.split(".*"))


@pytest.mark.parametrize(
    "text",
    [
        '{"edges": [{"source": 0, "target": 1}, {"source": 1, "target": 2}]}',
        '{"edges": [[0, "1"], {"source": 1, "target": 2}]}',
        '{"nodes": [0, 1, 2], "links": [[0, 1], [1, 2]]}',
        '{"nodes": [{"id": "0"}, {"id": 1}, {"id": 2}], "links": [[0, "1"], ["1", "2"]]}',
        '{"neighbours": {"0": [1], "1": [0, 2], "2": ["1"]}}',
    ],
)
def test_agents_in_json_may_be_called_by_numbers(tmp_path, text):
    network = networks.from_file(write(tmp_path / "net.json", text))
    assert network.edges == ((0, 1), (1, 2))
    assert network.names == ("0", "1", "2")


def test_agents_in_json_may_be_called_as_the_keys_of_other_forms(tmp_path):
    path = write(
        tmp_path / "net.json", '{"nodes": ["edges"], "edges": ["nodes", "a"], "a": ["edges"]}'
    )
    network = networks.from_file(path)
    assert network.names == ("nodes", "edges", "a")
    assert network.edges == ((0, 1), (1, 2))


@pytest.mark.parametrize("text", ["a,b {x}\n{y} c,b {z}\n", '"a","b {x}"\n"{y} c","b {z}"\n'])
def test_names_in_lists_of_links_may_have_braces(tmp_path, text):
    network = networks.from_file(write(tmp_path / "net.csv", text + "a,{y} c\nb {x},b {z}\n"))
    assert network.names == ("a", "b {x}", "{y} c", "b {z}")


def test_attributes_in_lists_of_links_may_have_attributes(tmp_path):
    text = '0 1 {"at": {"x": 1, "y": 2}, "weight": 2}\n1 2 {"weight": 2}\n2 3 {}\n'
    with pytest.raises(BezoarError, match=r"weights from 1 to 2 \(0 – 1\)"):
        networks.from_file(write(tmp_path / "net.edgelist", text))


@pytest.mark.parametrize("end", ["", " {", " }"])
@pytest.mark.parametrize("filler", [" ", ", ", " {'", " {' }"])
def test_a_long_line_takes_no_more_time_than_its_length(filler, end):
    """With the square of its length this would go on for many minutes."""
    line = "b" + filler * 300_000 + end
    with suppress(BezoarError):
        read_edge_list(f"a b\n{line}\n".encode())


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


def test_large_files_are_not_read(tmp_path, monkeypatch):
    path = write(tmp_path / "net.txt", "0 1\n")
    monkeypatch.setattr("bezoar.networks._files.MOST_BYTES", 3)
    with pytest.raises(BezoarError, match="it has 4 bytes; allowed: at most 3"):
        networks.from_file(path)


def test_large_networks_are_not_made(tmp_path, monkeypatch):
    path = write(tmp_path / "net.txt", "0 1\n1 2\n")
    monkeypatch.setattr("bezoar.networks._topologies.MOST_LINKS", 1)
    with pytest.raises(BezoarError, match="3 agents would have 2 links; allowed: at most 1"):
        networks.from_file(path)
    monkeypatch.setattr("bezoar.networks._topologies.MOST_AGENTS", 2)
    with pytest.raises(BezoarError, match="it would have 3 agents; allowed: at most 2"):
        networks.from_file(path)


def test_who_is_poisoned_may_be_said_instead():
    path = FILES / "office.graphml"
    assert networks.from_file(path, poisoned=["lab"]).poisoned == (3,)
    assert networks.from_file(path, poisoned=[]).poisoned == ()
    assert networks.from_file(path, poisoned=2).poisoned == (2, 3)
    assert networks.from_file(FILES / "from-one.txt", poisoned=[1]).poisoned == (0,)
    with pytest.raises(BezoarError, match="poisoned: expected 0 … 3 of 4 agents, found 4"):
        networks.from_file(path, poisoned=4)


def test_a_file_that_has_a_topologys_name_is_not_drawn_as_one(tmp_path):
    assert networks.from_file(write(tmp_path / "fan.csv", "a,b\nb,c\n")).name == "fan.csv"


def test_links_that_are_written_out():
    network = networks.from_edges([["b", "a"], ["a", 3]], poisoned=["a"])
    assert network.names == ("b", "a", "3")
    assert network.poisoned == (1,)
    assert networks.from_edges([(1, 0), (2, 1)]).names == ("0", "1", "2")
    with pytest.raises(BezoarError, match=r"edges: expected pairs of agents, found \['a'\]"):
        networks.from_edges([["a"]])
    with pytest.raises(BezoarError, match="edges: expected pairs of agents, found 1"):
        networks.from_edges([1, 2])
    with pytest.raises(BezoarError, match="1 repeated link"):
        networks.from_edges([["a", "b"], ["a", "b"]])


# What is written is read back, in every format.


def graphml(graph, path):
    nx.write_graphml(graph, path)


def gexf(graph, path):
    nx.write_gexf(graph, path)


def gml(graph, path):
    nx.write_gml(graph, path)


def node_link(graph, path):
    path.write_text(json.dumps(nx.node_link_data(graph)))


def adjacency_data(graph, path):
    path.write_text(json.dumps(nx.adjacency_data(graph)))


def dict_of_lists(graph, path):
    marked = [node for node, mark in graph.nodes(data="poisoned") if mark]
    path.write_text(json.dumps({**nx.to_dict_of_lists(graph), "poisoned": marked}))


def comma(graph, path):
    lines = [",".join(f'"{end}"' for end in edge) for edge in graph.edges]
    path.write_text("source,target\n" + "\n".join(lines), encoding="utf-8-sig")


def semicolon(graph, path):
    path.write_text("\r\n".join(f"{one};{other};1" for one, other in graph.edges), "utf-8")


def tab(graph, path):
    nx.write_edgelist(graph, path, delimiter="\t", data=False)


#: Whether nodes are told in their order, with marks; lists of links have neither.
WRITERS = {
    ("graphml", graphml): True,
    ("gexf", gexf): True,
    ("gml", gml): True,
    ("json", node_link): True,
    ("json", adjacency_data): True,
    ("json", dict_of_lists): True,
    ("csv", comma): False,
    ("csv", semicolon): False,
    ("edgelist", tab): False,
}


@st.composite
def graphs(draw):
    """Connected graphs of two to eight agents with names, some of them marked."""
    letters = st.characters(codec="utf-8", categories=["L", "N"], include_characters="-. ")
    name = st.text(letters, min_size=1, max_size=6).map(lambda text: " ".join(text.split()))
    names = draw(st.lists(name.filter(bool), min_size=2, max_size=8, unique_by=str.lower))
    graph = nx.Graph()
    graph.add_nodes_from(names)
    for place, one in enumerate(names[1:], start=1):
        graph.add_edge(names[draw(st.integers(0, place - 1))], one)
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(names))
    graph.add_edges_from((one, other) for one, other in draw(st.lists(pairs)) if one != other)
    for marked in draw(st.sets(st.sampled_from(names), max_size=len(names) - 1)):
        graph.nodes[marked]["poisoned"] = True
    return graph


@pytest.mark.parametrize("written", WRITERS, ids=lambda written: written[1].__name__)
@settings(deadline=None, derandomize=True, max_examples=25)
@given(graph=graphs())
def test_what_is_written_is_read_back(tmp_path_factory, written, graph):
    ending, write_graph = written
    path = tmp_path_factory.mktemp("net") / f"net.{ending}"
    write_graph(graph, path)
    found, meant = networks.from_file(path), Network(graph)
    assert set(found.names) == set(meant.names)
    assert {frozenset(found.named(edge)) for edge in found.edges} == {
        frozenset(meant.named(edge)) for edge in meant.edges
    }
    if WRITERS[written]:
        assert found == meant
        assert found.names == meant.names
