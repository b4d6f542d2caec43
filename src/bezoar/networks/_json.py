"""Graphs in JSON: networkx's two forms, neighbours of each agent, or a list of links."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx

from bezoar._errors import BezoarError
from bezoar._options import nearest_first
from bezoar.networks._graphs import MARK
from bezoar.networks._listed import Link, add_node, decode, graph_of

#: Keys of networkx's forms that say nothing about the network.
_FORMAL = ("directed", "multigraph", "graph", "name")

_FORMS = (
    'expected {"nodes": …, "links": …} or {"nodes": …, "adjacency": …} as networkx writes them, '
    'the neighbours of each agent {"a": ["b", "c"], …} or {"neighbours": [[1, 2], [0], …]}, or '
    '{"edges": [["a", "b"], …]}'
)


def read_json(content: bytes) -> nx.Graph:
    """The graph in a JSON document; an agent may be called by a number as well as by a text."""
    document = json.loads(decode(content), object_pairs_hook=_object)
    if not isinstance(document, dict):
        raise BezoarError(f"{_FORMS}; found {_told(document)}")
    document = {"neighbours" if key == "neighbors" else key: v for key, v in document.items()}
    poisoned = _list(MARK, document.pop(MARK, []))
    graph = _graph(document)
    for agent in poisoned:
        if str(agent) not in graph:
            near = ", ".join(nearest_first(str(agent), graph)[:5])
            raise BezoarError(f"{MARK}: agent {agent} is not in the network; allowed: {near}")
        graph.nodes[str(agent)][MARK] = True
    return graph


def _graph(document: Mapping[str, Any]) -> nx.Graph:
    """The graph in any of the forms."""
    if document and all(_are_keys(value, document) for value in document.values()):
        return _adjacency(document)  # whose agents may be called nodes or edges
    if "nodes" in document:
        return _node_link(document)
    if "neighbours" in document:
        _check_keys(document, ("neighbours",))
        return _adjacency(document["neighbours"])
    if "edges" in document:
        _check_keys(document, ("edges",))
        return graph_of(_links(document["edges"], directed=False))
    if not document or not all(isinstance(value, list) for value in document.values()):
        raise BezoarError(f"{_FORMS}; found the keys {', '.join(document) or 'none'}")
    return _adjacency(document)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, unless a key is there twice: one of them would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BezoarError(f"the key {twice!r} is there twice; each needs its own")
    return found


def _are_keys(found: Any, document: Mapping[str, Any]) -> bool:
    """Whether something is a list, not an empty one, of keys of the document."""
    return isinstance(found, list) and bool(found) and all(str(key) in document for key in found)


def _node_link(document: Mapping[str, Any]) -> nx.Graph:
    """Networkx's node-link and adjacency data."""
    _check_keys(document, ("nodes", "links", "edges", "adjacency", *_FORMAL))
    nodes: dict[str, Mapping[str, Any]] = {}
    for node in _list("nodes", document["nodes"]):
        told = node if isinstance(node, dict) else {"id": node}
        label = told.get("id", told.get("name"))
        add_node(nodes, _name(label, node, "nodes: expected an id for every node"), told)
    if "adjacency" not in document:
        found = document.get("links", document.get("edges"))
        return graph_of(_links(found, bool(document.get("directed"))), nodes)
    adjacency = _list("adjacency", document["adjacency"])
    if len(nodes) != len(adjacency):
        raise BezoarError(f"adjacency: expected {len(nodes)} lists, found {len(adjacency)}")
    links: list[Link] = []
    for one, neighbours in zip(nodes, adjacency, strict=True):
        for link in _list("adjacency", neighbours):
            other = link.get("id") if isinstance(link, dict) else None
            expected = "adjacency: expected neighbours with an id"
            links.append((one, _name(other, link, expected), link, True))
    return graph_of(links, nodes)


def _adjacency(found: Any) -> nx.Graph:
    """The neighbours of each agent, in an object or, by numbers, in a list."""
    if isinstance(found, list):
        found = {str(number): neighbours for number, neighbours in enumerate(found)}
    if not isinstance(found, dict):
        raise BezoarError(f"neighbours: expected each agent's neighbours, found {_told(found)}")
    links: list[Link] = []
    for agent, neighbours in found.items():
        field = f"neighbours of {agent}"
        for neighbour in _list(field, neighbours):
            links.append(
                (agent, _name(neighbour, neighbour, f"{field}: expected agents"), {}, True)
            )
    return graph_of(links, {agent: {} for agent in found})


def _links(found: Any, directed: bool) -> list[Link]:
    """Links given as pairs, or as objects with a source and a target."""
    links: list[Link] = []
    for link in _list("links", found):
        told = link if isinstance(link, dict) else {}
        ends = [told.get("source"), told.get("target")] if told else link
        if not isinstance(ends, list) or len(ends) != 2:
            ends = [None, None]  # which are no names
        expected = "links: expected pairs of agents, or objects with a source and a target"
        one, other = (_name(end, link, expected) for end in ends)
        links.append((one, other, told, directed and bool(told)))
    return links


def _name(found: Any, inside: Any, expected: str) -> str:
    """A text or a number as the name of an agent; ``inside`` is where it was found."""
    is_name = isinstance(found, str | int | float) and not isinstance(found, bool)
    if not is_name or found != found:
        raise BezoarError(f"{expected}, found {_told(inside)}")
    return str(found)


def _list(key: str, found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise BezoarError(f"{key}: expected a list, found {_told(found)}")
    return found


def _check_keys(document: Mapping[str, Any], allowed: Iterable[str]) -> None:
    for key in document:
        if key not in allowed:
            near = ", ".join(nearest_first(key, (*allowed, MARK)))
            raise BezoarError(f"no key {key!r}; allowed: {near}")


def _told(found: Any) -> str:
    """Something as JSON writes it, the beginning of it."""
    text = json.dumps(found, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"
