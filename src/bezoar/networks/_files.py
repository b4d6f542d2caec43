"""Networks from files: GraphML, edge lists, adjacency JSON."""

import json
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Any

import networkx as nx

from bezoar._errors import BezoarError
from bezoar._options import choose
from bezoar.networks._network import Network

#: A graph, and the agents that the file says are poisoned.
Read = tuple[nx.Graph, list[int]]


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
        return Network(graph, marked if poisoned is None else poisoned, name=path.stem)
    except BezoarError as error:
        raise BezoarError(f"network file: {path}: {error}") from None
    except OSError as error:
        raise BezoarError(f"network file: cannot read {path}: {error.strerror}") from error
    except Exception as error:  # each parser fails in ways of its own
        raise BezoarError(
            f"network file: {path} is not a valid {path.suffix} file: {error}"
        ) from error


def _marked(graph: nx.Graph) -> Read:
    """A graph whose poisoned agents have a true attribute ``poisoned``, without directions."""
    graph = nx.Graph(graph)
    return graph, [agent for agent, marked in graph.nodes(data="poisoned") if marked is True]


def _read_graphml(path: Path) -> Read:
    graph = nx.read_graphml(path)
    return _marked(nx.relabel_nodes(graph, {label: _agent(label) for label in graph}))


def _read_edges(path: Path) -> Read:
    graph = nx.Graph()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fields = line.partition("#")[0].replace(",", " ").split()
        if len(fields) == 2:
            graph.add_edge(*map(_agent, fields))
        elif fields:
            raise BezoarError(f"line {number}: expected two agents, found {line.strip()!r}")
    return graph, []


def _read_json(path: Path) -> Read:
    document: Any = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or not ({"neighbours", "adjacency"} & set(document)):
        raise BezoarError("it needs the key 'neighbours' or 'adjacency'")
    if "adjacency" in document:
        return _marked(nx.adjacency_graph(document))
    graph = nx.Graph(dict(enumerate(document["neighbours"])))
    return graph, document.get("poisoned", [])


def _agent(label: str) -> int | str:
    """``"3"`` and GraphML's ``"n3"`` as 3; anything else unchanged, for the network to refuse."""
    digits = label.removeprefix("n")
    return int(digits) if digits.isdecimal() else label


_READERS: dict[str, Callable[[Path], Read]] = {
    ".graphml": _read_graphml,
    **dict.fromkeys((".edges", ".edgelist", ".txt", ".csv"), _read_edges),
    ".json": _read_json,
}
