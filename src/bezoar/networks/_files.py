"""Networks from files: GraphML, edge lists, adjacency JSON."""

import json
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Any

import networkx as nx

from bezoar._errors import BezoarError
from bezoar._options import choose
from bezoar.networks._network import Network


def from_file(path: Path, poisoned: Sequence[int] | Set[int] | None = None) -> Network:
    """Read a network; the format follows from the ending.

    - ``.graphml``: GraphML; agents with a true attribute ``poisoned`` are poisoned.
    - ``.edges``, ``.edgelist``, ``.txt``, ``.csv``: one edge a line, two agents separated by
      blanks or a comma; ``#`` starts a comment.
    - ``.json``: ``{"neighbours": [[1, 2], [0], …], "poisoned": [2]}``, a list with each agent's
      neighbours (``poisoned`` may be left out), or networkx's ``adjacency_data``.

    Args:
        path: the file.
        poisoned: the poisoned agents; given, it replaces what the file says.
    """
    path = Path(path)
    read = choose("network file ending", path.suffix.lower(), _READERS)
    try:
        graph, marked = read(path)
    except OSError as error:
        raise BezoarError(f"network file: cannot read {path}: {error.strerror}") from error
    except BezoarError:
        raise
    except Exception as error:  # each parser fails in ways of its own
        raise BezoarError(
            f"network file: {path} is not a valid {path.suffix} file: {error}"
        ) from error
    try:
        return Network(graph, marked if poisoned is None else poisoned, name=path.stem)
    except BezoarError as error:
        raise BezoarError(f"network file: {path}: {error}") from None


def _read_graphml(path: Path) -> tuple[nx.Graph, list[int]]:
    graph = nx.read_graphml(path)
    if graph.is_directed() or graph.is_multigraph():
        graph = nx.Graph(graph)
    graph = nx.relabel_nodes(graph, {label: _agent(label) for label in graph})
    return graph, [agent for agent, marked in graph.nodes(data="poisoned") if marked is True]


def _read_edges(path: Path) -> tuple[nx.Graph, list[int]]:
    graph = nx.Graph()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fields = line.partition("#")[0].replace(",", " ").split()
        if not fields:
            continue
        if len(fields) != 2:
            raise BezoarError(
                f"network file: {path}, line {number}: expected two agents, found {line.strip()!r}"
            )
        graph.add_edge(_agent(fields[0]), _agent(fields[1]))
    return graph, []


def _read_json(path: Path) -> tuple[nx.Graph, list[int]]:
    document: Any = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or not ({"neighbours", "adjacency"} & set(document)):
        raise BezoarError(f"network file: {path} needs the key 'neighbours' or 'adjacency'")
    if "adjacency" in document:
        graph = nx.adjacency_graph(document)
        if graph.is_directed() or graph.is_multigraph():
            graph = nx.Graph(graph)
        return graph, [agent for agent, marked in graph.nodes(data="poisoned") if marked is True]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(document["neighbours"])))
    for agent, neighbours in enumerate(document["neighbours"]):
        graph.add_edges_from((agent, neighbour) for neighbour in neighbours)
    return graph, document.get("poisoned", [])


def _agent(label: str) -> int | str:
    """``"3"`` and GraphML's ``"n3"`` as 3; anything else unchanged, for the network to refuse."""
    digits = label.removeprefix("n")
    return int(digits) if digits.isdecimal() else label


_READERS: dict[str, Callable[[Path], tuple[nx.Graph, list[int]]]] = {
    ".graphml": _read_graphml,
    ".edges": _read_edges,
    ".edgelist": _read_edges,
    ".txt": _read_edges,
    ".csv": _read_edges,
    ".json": _read_json,
}
