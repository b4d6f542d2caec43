"""Graphs in XML: GraphML and GEXF.

They are read here, not by networkx, because its readers refuse values that are not of the declared
type, leave out defaults, and make agents of misspelled ends of links.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

import networkx as nx

from bezoar._errors import BezoarError
from bezoar.networks._listed import Link, add_node, graph_of

Attributes = dict[str, Any]


def read_graphml(content: bytes) -> nx.Graph:
    """The graph in a GraphML document; a key's default counts where nothing else is said."""
    root = _parse(content)
    graph = _only_graph(root)
    if next(_inner(graph, "hyperedge"), None) is not None:
        raise BezoarError("it has hyperedges; replace each by links between two agents")
    keys = {key.get("id"): key for key in _inner(root, "key")}
    defaults: dict[str, Attributes] = {"node": {}, "edge": {}}
    for key in keys.values():
        for kind in defaults:
            if key.get("for") in (kind, "all", None):
                defaults[kind] |= {_key_name(key): _text(each) for each in _inner(key, "default")}
    nodes: dict[str, Mapping[str, Any]] = {}
    for node in _inner(graph, "node"):
        _add(nodes, node, defaults["node"] | _data(node, keys))
    links: list[Link] = []
    is_directed = graph.get("edgedefault") == "directed"
    for edge in _inner(graph, "edge"):
        directed = {"true": True, "false": False}.get(edge.get("directed", ""), is_directed)
        told = defaults["edge"] | _data(edge, keys)
        links.append((edge.get("source", ""), edge.get("target", ""), told, directed))
    return graph_of(links, nodes)


def _data(element: Element, keys: dict[str | None, Element]) -> Attributes:
    """The data of a node or an edge by the names of their keys."""
    found: Attributes = {}
    for data in element:
        if _tag(data) != "data":
            continue
        if data.get("key") not in keys:
            raise BezoarError(f"data: the key {data.get('key')!r} is not declared")
        if not len(data):
            found[_key_name(keys[data.get("key")])] = _text(data)
        for geometry in _inner(data, "Geometry"):  # of yEd, whose y points downwards
            across, down = geometry.get("x"), geometry.get("y")
            if across and down:
                found |= {"x": across, "y": str(-float(down))}
        for label in _inner(data, "NodeLabel"):
            found.setdefault("label", _text(label))
    return found


def _key_name(key: Element) -> str:
    return key.get("attr.name") or key.get("yfiles.type") or key.get("id") or ""


def read_gexf(content: bytes) -> nx.Graph:
    """The graph in a GEXF document; an attribute's default counts where nothing else is said."""
    graph = _only_graph(_parse(content))
    titles: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
    defaults: dict[str, Attributes] = {"node": {}, "edge": {}}
    for several in _inner(graph, "attributes"):
        kind = several.get("class", "node")
        for attribute in _inner(several, "attribute"):
            title = attribute.get("title") or attribute.get("id") or ""
            titles[kind][attribute.get("id", "")] = title
            for default in _inner(attribute, "default"):
                defaults[kind][title] = _text(default)
    nodes: dict[str, Mapping[str, Any]] = {}
    for node in _inner(graph, "node"):
        told = defaults["node"] | _values(node, titles["node"])
        for position in _inner(node, "position"):
            told |= {axis: position.get(axis) for axis in "xy" if position.get(axis)}
        _add(nodes, node, told | {"label": node.get("label")})
    links: list[Link] = []
    usual = graph.get("defaultedgetype", "undirected")
    for edge in _inner(graph, "edge"):
        told = defaults["edge"] | _values(edge, titles["edge"])
        if edge.get("weight"):
            told["weight"] = edge.get("weight")
        directed = edge.get("type", usual) == "directed"
        links.append((edge.get("source", ""), edge.get("target", ""), told, directed))
    return graph_of(links, nodes)


def _values(element: Element, titles: dict[str, str]) -> Attributes:
    found: Attributes = {}
    for several in element:
        if _tag(several) != "attvalues":
            continue
        for value in several:
            key = value.get("for", value.get("id", ""))
            if key not in titles:
                raise BezoarError(f"attvalue: the attribute {key!r} is not declared")
            found[titles[key]] = value.get("value", "")
    return found


def _add(nodes: dict[str, Mapping[str, Any]], node: Element, told: Attributes) -> None:
    if (label := node.get("id")) is None:
        raise BezoarError("a node has no id; give each one of its own")
    add_node(nodes, label, told)


def _only_graph(root: Element) -> Element:
    found = [element for element in root if _tag(element) == "graph"]
    if len(found) != 1:
        raise BezoarError(f"expected one graph in it, found {len(found)}")
    return found[0]


def _parse(content: bytes) -> Element:
    """The document, unless it declares entities: a few of them can expand to gigabytes."""
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = _refuse_entities
    parser.Parse(content, True)
    return ElementTree.fromstring(content)


def _refuse_entities(name: str, *_: Any) -> NoReturn:
    raise BezoarError(f"it declares the entity {name!r}; write out what it stands for")


def _inner(element: Element, tag: str) -> Iterator[Element]:
    """All elements of a kind inside another, whatever their namespace."""
    return (inner for inner in element.iter() if inner is not element and _tag(inner) == tag)


def _tag(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _text(element: Element) -> str:
    return (element.text or "").strip()
