"""What a networkx graph says of a network: names, links, marks and coordinates.

Whatever a network has no room for is refused, or taken with a note: nothing is dropped silently.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from math import isfinite
from typing import Any

import networkx as nx
import numpy as np

from bezoar._arrays import Floats, Ints
from bezoar._errors import BezoarError
from bezoar._numbers import listed
from bezoar._options import nearest_first

#: The node attribute that marks poisoned agents, and how it says yes and no.
MARK = "poisoned"
YES = ("1", "1.0", "true", "yes", "y", "t", "on")
NO = ("0", "0.0", "false", "no", "n", "f", "off", "none", "null", "")

#: How alike another attribute's name must be to be taken for a misspelled mark.
_ALIKE = 0.76

#: Pairs of attributes that are coordinates: to the right, and upwards.
_COORDINATES = (("x", "y"), ("lon", "lat"), ("longitude", "latitude"), ("lng", "lat"))


def agent_names(graph: nx.Graph) -> dict[Any, str]:
    """The name of every node, in the order of the agents' numbers.

    Nodes that are called 0 … W-1 have these numbers; others are numbered in the graph's order.
    """
    if not isinstance(graph, nx.Graph):
        raise BezoarError(
            f"graph: expected an undirected networkx Graph, found {type(graph).__name__}"
        )
    if not len(graph):
        raise BezoarError("graph: it has no agents; at least one is needed")
    names = {node: " ".join(str(node).split()) for node in graph}
    for name, times in Counter(names.values()).items():
        if times > 1:
            raise BezoarError(f"graph: {times} agents are called {name!r}; each needs its own name")
        if not name or not name.isprintable():
            raise BezoarError(f"graph: expected a readable name for every agent, found {name!r}")
    if set(names.values()) == set(map(str, range(len(graph)))):
        return dict(sorted(names.items(), key=lambda item: int(item[1])))
    return names


def links(graph: nx.Graph, names: Mapping[Any, str], symmetric: bool) -> tuple[Ints, str]:
    """``[2, E]`` every link once, by the numbers of its ends; and a note on what was left out.

    Raises:
        BezoarError: if something would be left out and ``symmetric`` does not allow it.
    """
    numbers = {node: number for number, node in enumerate(names)}
    told = list(names.values())
    ends = np.array([numbers[end] for pair in graph.edges() for end in pair], dtype=np.int64)
    ends = ends.reshape(-1, 2)
    is_loop = ends[:, 0] == ends[:, 1]
    pairs, times = _distinct(ends[~is_loop] if graph.is_directed() else np.sort(ends[~is_loop]))
    is_one_way = np.zeros(len(pairs), dtype=np.bool_)
    if graph.is_directed():
        is_one_way = ~np.isin(pairs @ (len(told), 1), pairs @ (1, len(told)))
    problems = [
        _some(pairs[is_one_way], "one-way link", " → ", told),
        _some(pairs[times > 1], "repeated link", " – ", told),
        _some(ends[is_loop][:, :1], "link of an agent to itself", "", told),
        _weights(graph, numbers, told),
    ]
    found = "; ".join(filter(None, problems))
    if found and not symmetric:
        raise BezoarError(
            f"graph: it has {found}. A network has every link once, both ways and without a "
            "weight: change the graph, or say symmetric=true to take it so, with a note"
        )
    note = f"taken as symmetric and without weights: it had {found}" if found else ""
    return _distinct(np.sort(pairs))[0].T, note


def _distinct(pairs: Ints) -> tuple[Ints, Ints]:
    """``[n, 2]`` each pair once, ascending, and how often it is there."""
    base = int(pairs.max(initial=0)) + 1
    codes, times = np.unique(pairs @ (base, 1), return_counts=True)
    return np.stack(np.divmod(codes, base), axis=1), times


def _some(found: Ints, what: str, between: str, names: Sequence[str]) -> str:
    """How many there are of a kind of link, with an example."""
    if not len(found):
        return ""
    several = what if len(found) == 1 else what.replace("link", "links")
    return f"{len(found):,} {several} ({between.join(names[agent] for agent in found[0])})"


def _weights(graph: nx.Graph, numbers: Mapping[Any, int], names: Sequence[str]) -> str:
    """What is told of weights; nothing if they are all the same."""
    found: dict[float, tuple[Any, Any]] = {}
    for one, other, attributes in graph.edges(data=True):
        for key, value in attributes.items():
            if str(key).lower() in ("weight", "weights"):
                found.setdefault(_number(value, f"the weight of {one} – {other}"), (one, other))
                break
        else:
            found.setdefault(1.0, (one, other))
    if len(found) < 2:
        return ""
    low, high = min(found), max(found)
    one, other = (names[numbers[node]] for node in found[high])
    return f"weights from {low:g} to {high:g} ({one} – {other})"


def _number(value: Any, what: str) -> float:
    try:
        read = float(value)
    except (TypeError, ValueError):
        raise BezoarError(f"graph: expected a number as {what}, found {value!r}") from None
    if not isfinite(read):
        raise BezoarError(f"graph: expected a finite number as {what}, found {value!r}")
    return read


def marked(graph: nx.Graph) -> list[Any]:
    """The nodes whose attribute ``poisoned`` is true, 1, yes, …."""
    keys = {str(key) for _, attributes in graph.nodes(data=True) for key in attributes}
    for key in sorted(keys):
        check_mark(key)
    found = []
    for key in (key for key in keys if key.strip().lower() == MARK):
        for node, value in graph.nodes(data=key):
            text = str(value).strip().lower()
            if text not in (*YES, *NO):
                raise BezoarError(
                    f"graph: {MARK} at agent {node}: expected true or false, found {value!r}"
                )
            if text in YES:
                found.append(node)
    return found


def check_mark(key: str) -> None:
    """Refuse an attribute that looks as if it were to say who is poisoned."""
    found = key.strip().lower()
    if found != MARK and SequenceMatcher(None, found, MARK).ratio() >= _ALIKE:
        raise BezoarError(
            f"graph: agents have the attribute {key!r}; did you mean {MARK!r}? Rename one that "
            "means something else"
        )


def coordinates(graph: nx.Graph, nodes: Iterable[Any]) -> Floats | None:
    """``[W, 2]`` where agents are, x to the right and y upwards; ``None`` unless all say it."""
    points = []
    for node in nodes:
        point = _point({str(key).lower(): value for key, value in graph.nodes[node].items()})
        if point is None:
            return None
        points.append(point)
    array = np.array(points, dtype=np.float64)
    return array if np.isfinite(array).all() and (array != array[0]).any() else None


def _point(attributes: dict[str, Any]) -> tuple[float, float] | None:
    for key in ("viz", "graphics", "pos", "position"):
        if isinstance(inner := attributes.get(key), Mapping):
            attributes = attributes | dict(inner)
    found: Any = attributes.get("pos", attributes.get("position"))
    for across, up in _COORDINATES:
        if across in attributes and up in attributes:
            found = (attributes[across], attributes[up])
            break
    if isinstance(found, str):
        found = found.strip("()[]").replace(",", " ").split()
    try:
        across, up, *_ = found
        return float(across), float(up)
    except (TypeError, ValueError):
        return None


def parts_told(part: Ints, names: Sequence[str]) -> str:
    """The parts of a network that are not linked to each other, the largest first.

    Args:
        part: ``[W]`` the number of the part that each agent is in.
        names: ``[W]`` what each agent is called.
    """
    sizes = np.bincount(part)
    largest = np.argsort(-sizes, kind="stable")[:4]
    members = ([names[agent] for agent in np.flatnonzero(part == n).tolist()] for n in largest)
    told = [f"({listed(each, 4)})" for each in members]
    if len(sizes) > 4:
        told.append(f"{len(sizes) - 4} more")
    return " and ".join(told)


def numbers_of(given: Iterable[Any], names: Sequence[str], nodes: Iterable[Any] = ()) -> list[int]:
    """The numbers of agents that are given by number, by name, or as nodes of a graph."""
    by_node = {(_kind(node), node): number for number, node in enumerate(nodes)}
    by_name: dict[str, int] = {}
    found = []
    for agent in given:
        number: int | None = None
        if by_node and isinstance(agent, Hashable):
            number = by_node.get((_kind(agent), agent))
        is_number = _kind(agent) is int
        if number is None and (isinstance(agent, str) or (by_node and is_number)):
            by_name = by_name or {name: number for number, name in enumerate(names)}
            number = by_name.get(str(agent).strip())
        elif number is None and is_number and 0 <= agent < len(names):
            number = int(agent)
        if number is None:
            raise BezoarError(f"poisoned: {unknown_agent(agent, names)}")
        found.append(number)
    return found


def unknown_agent(agent: Any, names: Sequence[str]) -> str:
    """That nobody is called so, and who is."""
    allowed = f"0 … {len(names) - 1}"
    if names[0] != "0" or names[-1] != str(len(names) - 1):
        some = nearest_first(str(agent), names) if len(names) <= 1000 else list(names)
        allowed = listed(some, 8)
    elif _kind(agent) is not int and not isinstance(agent, str):
        return f"agents are integers or names, found {agent!r}"
    return f"agent {agent} is not in the network; allowed: {allowed}"


def _kind(value: Any) -> type:
    """The type of a value; integers of numpy are integers."""
    return int if isinstance(value, np.integer) else type(value)
