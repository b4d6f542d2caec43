"""Lists of links as text: one a line, with or without a header and weights."""

import csv
import re
from collections.abc import Sequence
from typing import Any

import networkx as nx

from bezoar._errors import BezoarError
from bezoar.networks._graphs import MARK, check_mark
from bezoar.networks._listed import Link, decode, graph_of

#: What headers call the two ends of a link, its weight, and whether it has a direction.
_SOURCES = ("source", "from", "src", "start", "node1", "node_1", "agent1", "agent_1", "sender")
_TARGETS = ("target", "to", "dst", "end", "node2", "node_2", "agent2", "agent_2", "receiver")
_WEIGHTS = ("weight", "weights")

#: A comment: a line that begins so, or what follows after a blank.
_COMMENT = re.compile(r"(^|\s)#.*|^\s*(%|//).*")

#: The attributes of a link as networkx writes them: {'colour': 'red', 'weight': 0.5}.
_ATTRIBUTES = re.compile(r"(?<![\s,;])[\s,;]+\{((?:['\"].*)?)\}\s*$")
_WEIGHT = re.compile(r"['\"]weight['\"]: *([^,{}]+)")

Row = tuple[int, list[str]]


def read_edge_list(content: bytes) -> nx.Graph:
    """The graph of a list of links.

    A list that has some link in both directions lists directions: then all others must be there
    in both, too.
    """
    rows = _rows(decode(content))
    header = _header(rows) if rows else None
    source, target, weight, kind = header or (0, 1, 2, -1)
    links: list[Link] = []
    for line, row in rows[header is not None :]:
        if len(row) <= max(source, target) or (header is None and len(row) > 3):
            raise BezoarError(
                f"line {line}: expected two agents, and perhaps a weight; found {', '.join(row)!r}"
            )
        if not row[source] or not row[target]:
            raise BezoarError(f"line {line}: expected two agents, found an empty name")
        told: dict[str, Any] = {}
        if 0 <= weight < len(row) and row[weight]:
            if not _is_number(row[weight]):
                raise BezoarError(
                    f"line {line}: expected a weight in the third column, found {row[weight]!r}; "
                    "give the columns a header with source and target"
                )
            told = {"weight": float(row[weight].replace(",", "."))}
        directed = 0 <= kind < len(row) and row[kind].lower() == "directed"
        links.append((row[source], row[target], told, directed))
    pairs = {(one, other) for one, other, *_ in links}
    both_ways = any((other, one) in pairs for one, other in pairs if one != other)
    return graph_of((*link[:3], both_ways or link[3]) for link in links)


def _rows(text: str) -> list[Row]:
    """The number and the fields of every line that is not empty or a comment."""
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        is_quoted = '"' in line and not line.lstrip().startswith("#")
        kept = (line if is_quoted else _COMMENT.sub("", line)).strip()
        # Looked for only where they must be, a line takes no more time than its length.
        attributes = _ATTRIBUTES.search(kept) if kept.endswith("}") else None
        weights = _WEIGHT.findall(attributes[1])[:1] if attributes else []
        kept = kept[: attributes.start()] if attributes else kept
        if kept.strip(" ,;\t"):
            lines.append((number, kept.strip(), weights))
    if lines and re.fullmatch("sep=.", lines[0][1].lower()):
        lines = lines[1:]  # a spreadsheet's word on what separates the columns
    mark = next((mark for mark in "\t;," if all(mark in line for _, line, _ in lines)), " ")
    rows = []
    for number, line, weights in lines:
        plain = line if mark != " " else " ".join(line.replace(",", " ").split())
        [fields] = csv.reader([plain], delimiter=mark, skipinitialspace=True)
        rows.append((number, [field.strip() for field in (*fields, *weights)]))
    return rows


def _header(rows: Sequence[Row]) -> tuple[int, int, int, int] | None:
    """The columns of source, target, weight and type; ``None`` if the first line is a link."""
    first = [field.lower().replace(" ", "_") for field in rows[0][1]]

    def place(names: Sequence[str]) -> int:
        return next((number for number, field in enumerate(first) if field in names), -1)

    source, target = place(_SOURCES), place(_TARGETS)
    if source >= 0 and target >= 0:
        for field in first:
            if field == MARK:
                raise BezoarError(
                    f"line {rows[0][0]}: a list of links cannot say who is {MARK}; name them with "
                    "--poisoned, or use GraphML"
                )
            check_mark(field)
        return source, target, place(_WEIGHTS), place(("type",))
    if first[:2] == ["id", "label"]:
        raise BezoarError(
            "it is a list of nodes; expected a list of links, with the columns source and target"
        )
    rest = [row for _, row in rows[1:]]
    ends = [field for row in rest for field in row[:2]]
    if ends and all(field.isdecimal() for field in ends) and not any(map(str.isdecimal, first)):
        return 0, 1, 2 if len(first) > 2 else -1, -1  # numbers under words
    thirds = [row[2] for row in rest if len(row) == 3]
    if len(first) == 3 and thirds and not _is_number(first[2]) and all(map(_is_number, thirds)):
        return 0, 1, 2, -1  # weights under a word
    return None


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
