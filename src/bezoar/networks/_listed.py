"""What readers of files share: their text, and the graph of the nodes and links they list."""

import codecs
from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx

from bezoar._errors import BezoarError
from bezoar._numbers import listed
from bezoar._options import nearest_first

#: The ids of its ends, attributes, and whether it goes from the one to the other only.
Link = tuple[str, str, Mapping[str, Any], bool]

#: The marks at the beginning of a file that tell its encoding.
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

#: Attributes that are a node's name, if each node has one of its own.
_NAMES = ("label", "name")


def decode(content: bytes) -> str:
    """A text in UTF-8, or in UTF-16 with a mark at its beginning, as spreadsheets write it."""
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        place = content[: error.start].count(b"\n") + 1
        raise BezoarError(f"line {place}: it is not UTF-8 text; save it as UTF-8") from None


def add_node(nodes: dict[str, Mapping[str, Any]], label: str, told: Mapping[str, Any]) -> None:
    """List another node with its attributes; an id that is there already is refused."""
    if label in nodes:
        raise BezoarError(f"two nodes have the id {label!r}; give each one of its own")
    nodes[label] = told


def graph_of(
    links: Iterable[Link], nodes: Mapping[str, Mapping[str, Any]] | None = None
) -> nx.Graph:
    """The graph of listed links and nodes; by default of the nodes at the ends of links.

    Nodes are called by their labels or names where all have different ones, else by their ids. If
    some link is directed, every other is there in both directions.
    """
    found = list(links)
    if nodes is None:
        nodes = {end: {} for link in found for end in link[:2]}
    names = _names(nodes)
    for one, other, _, _ in found:
        for end in (one, other):
            if end not in names:
                near = listed(nearest_first(str(end), nodes), 3)
                raise BezoarError(
                    f"a link of {one!r} and {other!r}: no node is called {end!r}; nodes are {near}"
                )
    is_directed = any(directed for *_, directed in found)
    graph = nx.MultiDiGraph() if is_directed else nx.MultiGraph()
    graph.add_nodes_from((names[node], dict(told)) for node, told in nodes.items())
    for one, other, told, directed in found:
        graph.add_edges_from([(names[one], names[other], dict(told))])
        if is_directed and not directed and one != other:
            graph.add_edges_from([(names[other], names[one], dict(told))])
    return graph


def _names(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    for key in _NAMES:
        labels = [" ".join(str(told.get(key) or "").split()) for told in nodes.values()]
        if all(labels) and len(set(labels)) == len(labels):
            return dict(zip(nodes, labels, strict=True))
    return {node: node for node in nodes}
