"""Networks from files, in the formats people have them in, and from lists of links."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import networkx as nx

from bezoar._errors import BezoarError
from bezoar._options import choose
from bezoar.networks import _topologies
from bezoar.networks._edge_lists import read_edge_list
from bezoar.networks._json import read_json
from bezoar.networks._listed import decode, graph_of
from bezoar.networks._network import Network
from bezoar.networks._topologies import Poisoned, check_size, poison
from bezoar.networks._xml import read_gexf, read_graphml

#: The largest file that is read.
MOST_BYTES = 200_000_000

#: Where a graph begins in GML.
_GRAPH = re.compile(r"^\s*graph\s*\[", re.MULTILINE)


def read_gml(content: bytes) -> nx.Graph:
    """The graph in a GML document, read by networkx."""
    # Networkx refuses repeated links unless the file says that there are some.
    text = _GRAPH.sub("graph [ multigraph 1", decode(content), count=1)
    try:
        graph = nx.parse_gml(text, label="id")
    except nx.NetworkXError as error:
        raise BezoarError(f"it is not valid GML: {error}") from None
    directed = graph.is_directed()
    links = [(str(one), str(other), told, directed) for one, other, told in graph.edges(data=True)]
    return graph_of(links, {str(node): told for node, told in graph.nodes(data=True)})


#: What reads each kind of file: from its content to a graph whose nodes are the agents' names.
READERS: dict[str, Callable[[bytes], nx.Graph]] = {
    ".graphml": read_graphml,
    ".gexf": read_gexf,
    ".gml": read_gml,
    ".json": read_json,
    **dict.fromkeys((".csv", ".tsv", ".edges", ".edgelist", ".txt"), read_edge_list),
}


def from_file(path: Path, poisoned: Poisoned | None = None, symmetric: bool = False) -> Network:
    """A network in a file: GraphML, GEXF, GML, JSON, or a list of links.

    Nodes keep their names, and their coordinates for drawings. Nodes with the attribute
    ``poisoned`` (true, 1, yes) are poisoned. The format follows from the ending, see
    :data:`READERS`; docs/networks.md describes each.

    Args:
        path: the file.
        poisoned: the names of poisoned agents, or their number ``n``, which means the last ``n``;
            given, it replaces what the file says.
        symmetric: take one-way links, repeated links, self-loops and weights as plain links, with
            a note.
    """
    path = Path(path)
    read = choose("network file ending", path.suffix.lower(), READERS)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise BezoarError(f"it has {size:,} bytes; allowed: at most {MOST_BYTES:,}")
        graph = read(path.read_bytes())
        # Drawings go by names of topologies, so a file called fan.csv is not called fan.
        name = path.name if path.stem in vars(_topologies) else path.stem
        return _network(name, graph, poisoned, symmetric)
    except BezoarError as error:
        raise BezoarError(f"network file: {path}: {error}") from None
    except OSError as error:
        raise BezoarError(f"network file: cannot read {path}: {error.strerror}") from error
    except (Exception, RecursionError) as error:  # each parser fails in ways of its own
        raise BezoarError(
            f"network file: {path} is not a valid {path.suffix} file: {error}"
        ) from error


def from_edges(
    edges: Sequence[tuple[int | str, int | str]],
    poisoned: Poisoned | None = None,
    symmetric: bool = False,
) -> Network:
    """A network of links that are written out: ``{edges = [["a", "b"], …]}`` in a spec.

    Args:
        edges: the two ends of every link: names, or numbers.
        poisoned: as for :func:`from_file`.
        symmetric: as for :func:`from_file`.
    """
    graph = nx.MultiGraph()
    for edge in edges:
        if not hasattr(edge, "__len__") or len(edge) != 2:
            raise BezoarError(f"edges: expected pairs of agents, found {edge!r}")
        graph.add_edge(*map(str, edge))
    return _network("from_edges", graph, poisoned, symmetric)


def _network(name: str, graph: nx.Graph, poisoned: Poisoned | None, symmetric: bool) -> Network:
    check_size(len(graph), graph.number_of_edges())
    network = Network(graph, name=name, symmetric=symmetric)
    return network if poisoned is None else poison(network, poisoned)
