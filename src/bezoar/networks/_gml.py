"""Graphs in GML, read by networkx."""

import re

import networkx as nx

from bezoar._errors import BezoarError
from bezoar.networks._listed import graph_of
from bezoar.networks._text import decode

#: Where a graph begins.
_GRAPH = re.compile(r"^\s*graph\s*\[", re.MULTILINE)


def read_gml(content: bytes) -> nx.Graph:
    """The graph in a GML document."""
    # Networkx refuses repeated links unless the file says that there are some.
    text = _GRAPH.sub("graph [ multigraph 1", decode(content), count=1)
    try:
        graph = nx.parse_gml(text, label="id")
    except nx.NetworkXError as error:
        raise BezoarError(f"it is not valid GML: {error}") from None
    directed = graph.is_directed()
    return graph_of(
        dict(graph.nodes(data=True)), [(*edge, directed) for edge in graph.edges(data=True)]
    )
