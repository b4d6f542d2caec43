"""Graphs in JSON: networkx's two forms, neighbours of each agent, or a list of links."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx

from bezoar._errors import BezoarError
from bezoar._options import nearest_first
from bezoar.networks._graphs import MARK
from bezoar.networks._listed import Link, decode, graph_of

#: Keys of networkx's forms that say nothing about the network.
_FORMAL = ("directed", "multigraph", "graph", "name")

_FORMS = (
    'expected {"nodes": …, "links": …} or {"nodes": …, "adjacency": …} as networkx writes them, '
    'the neighbours of each agent {"a": ["b", "c"], …} or {"neighbours": [[1, 2], [0], …]}, or '
    '{"edges": [["a", "b"], …]}'
)


def read_json(content: bytes) -> nx.Graph:
    """The graph in a JSON document."""
    document = json.loads(decode(content), object_pairs_hook=_object)
    if not isinstance(document, dict):
        raise BezoarError(f"{_FORMS}; found {_told(document)}")
    document = {"neighbours" if key == "neighbors" else key: v for key, v in document.items()}
    if "nodes" in document:
        return _node_link(document)
    if "neighbours" in document:
        _check_keys(document, ("neighbours", MARK))
        return _adjacency(document["neighbours"], document.get(MARK, []))
    if "edges" in document:
        _check_keys(document, ("edges", MARK))
        links = [_ends(link) for link in _list("edges", document["edges"])]
        ends: dict[str, dict[str, Any]] = {
            str(end): {} for one, other, *_ in links for end in (one, other)
        }
        return _with_marks(graph_of(ends, links), document.get(MARK, []))
    others = {key: value for key, value in document.items() if key != MARK}
    if not others or not all(isinstance(value, list) for value in others.values()):
        raise BezoarError(f"{_FORMS}; found the keys {', '.join(document) or 'none'}")
    return _adjacency(others, document.get(MARK, []))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, unless a key is there twice: one of them would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BezoarError(f"the key {twice!r} is there twice; each needs its own")
    return found


def _node_link(document: Mapping[str, Any]) -> nx.Graph:
    """Networkx's node-link and adjacency data."""
    _check_keys(document, ("nodes", "links", "edges", "adjacency", MARK, *_FORMAL))
    nodes: dict[Any, Mapping[str, Any]] = {}
    for node in _list("nodes", document["nodes"]):
        label = node.get("id", node.get("name")) if isinstance(node, dict) else node
        if not isinstance(label, str | int):
            raise BezoarError(f"nodes: expected an id for every node, found {_told(node)}")
        if label in nodes:
            raise BezoarError(f"nodes: two have the id {label!r}; give each one of its own")
        nodes[label] = node if isinstance(node, dict) else {}
    links: list[Link] = []
    if "adjacency" in document:
        adjacency = _list("adjacency", document["adjacency"])
        if len(nodes) != len(adjacency):
            raise BezoarError(f"adjacency: expected {len(nodes)} lists, found {len(adjacency)}")
        for one, neighbours in zip(nodes, adjacency, strict=True):
            for link in _list("adjacency", neighbours):
                if not isinstance(link, dict) or "id" not in link:
                    told = _told(link)
                    raise BezoarError(f"adjacency: expected neighbours with an id, found {told}")
                links.append((one, link["id"], link, True))
    else:
        found = [
            _ends(link) for link in _list("links", document.get("links", document.get("edges")))
        ]
        links = [(*link[:3], bool(document.get("directed"))) for link in found]
    return _with_marks(graph_of(nodes, links), document.get(MARK, []))


def _adjacency(found: Any, poisoned: Any) -> nx.Graph:
    """The neighbours of each agent, in an object or, by numbers, in a list."""
    if isinstance(found, list):
        found = dict(enumerate(found))
    if not isinstance(found, dict):
        raise BezoarError(f"neighbours: expected each agent's neighbours, found {_told(found)}")
    nodes: dict[Any, dict[str, Any]] = {agent: {} for agent in found}
    links: list[Link] = []
    for agent, neighbours in found.items():
        for neighbour in _list(f"neighbours of {agent}", neighbours):
            if not isinstance(neighbour, str | int) or isinstance(neighbour, bool):
                raise BezoarError(
                    f"neighbours of {agent}: expected agents, found {_told(neighbour)}"
                )
            is_name = next(iter(found)) != 0
            links.append((agent, str(neighbour) if is_name else neighbour, {}, True))
    return _with_marks(graph_of(nodes, links), poisoned)


def _ends(link: Any) -> Link:
    """A link given as a pair, or as an object with a source and a target."""
    if isinstance(link, dict) and {"source", "target"} <= set(link):
        return link["source"], link["target"], link, False
    if isinstance(link, list) and len(link) == 2:
        return str(link[0]), str(link[1]), {}, False
    raise BezoarError(
        "links: expected pairs of agents, or objects with a source and a target; found "
        f"{_told(link)}"
    )


def _with_marks(graph: nx.Graph, poisoned: Any) -> nx.Graph:
    """The graph with the listed agents marked, too."""
    for agent in _list(MARK, poisoned):
        if str(agent) not in graph:
            near = ", ".join(nearest_first(str(agent), graph)[:5])
            raise BezoarError(f"{MARK}: agent {agent} is not in the network; allowed: {near}")
        graph.nodes[str(agent)][MARK] = True
    return graph


def _list(key: str, found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise BezoarError(f"{key}: expected a list, found {_told(found)}")
    return found


def _check_keys(document: Mapping[str, Any], allowed: Iterable[str]) -> None:
    for key in document:
        if key not in allowed:
            raise BezoarError(f"no key {key!r}; allowed: {', '.join(nearest_first(key, allowed))}")


def _told(found: Any) -> str:
    """Something as JSON writes it, the beginning of it."""
    text = json.dumps(found, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"
