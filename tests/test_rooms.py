"""Dependencies point one way, and what starts with an underscore stays in its room."""

import ast
from pathlib import Path

import pytest

import bezoar

PACKAGE = Path(bezoar.__file__).parent

#: Which rooms each room may import.
ARROWS = {
    "networks": (),
    "theory": ("networks",),
    "data": (),
    "models": (),
    "attacks": ("networks",),
    "aggregators": ("networks",),
    "exchange": ("aggregators", "networks"),
    "training": (*("aggregators", "attacks", "data", "exchange", "models", "networks", "theory"),),
    "store": ("networks",),
    "experiments": ("data", "models", "networks", "store", "training"),
    "agents": (
        *("aggregators", "data", "exchange", "experiments", "networks", "store", "training"),
    ),
    "report": ("aggregators", "data", "experiments", "networks", "store", "theory", "training"),
    "paper": (
        *("aggregators", "attacks", "data", "experiments", "networks", "report", "store"),
        *("theory", "training"),
    ),
    "studies": ("experiments", "networks", "report", "theory"),
    "advice": (
        *("aggregators", "attacks", "data", "experiments", "networks", "paper", "report", "theory"),
        "training",
    ),
    "cli": (
        *("advice", "agents", "aggregators", "attacks", "data", "experiments", "networks", "paper"),
        *("report", "store", "studies", "theory", "training"),
    ),
}

#: Imports against the arrows: what makes a rule callable is looked up when it is called.
CALLS = {("aggregators", "exchange")}


def imports():
    """Every import of one of our modules: the file, the room it is in, what it imports."""
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0]
        for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                if node.module == "bezoar":
                    names = [f"bezoar.{alias.name}" for alias in node.names]
                else:
                    names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                if name.startswith("bezoar."):
                    yield path, room, name.split(".")[1:]


def _statements(node):
    """Everything but what only type checkers read."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _statements(child)


def test_every_room_is_here():
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == set(ARROWS)


def test_arrows_go_down():
    """No room can reach itself."""

    def reach(room, seen=()):
        assert room not in seen, (*seen, room)
        for other in ARROWS[room]:
            reach(other, (*seen, room))

    for room in ARROWS:
        reach(room)


def test_imports_follow_the_arrows():
    wrong = []
    for path, room, (other, *_) in imports():
        if room not in ARROWS or other not in ARROWS or other == room:
            continue
        if other not in ARROWS[room] and (room, other) not in CALLS:
            wrong.append(f"{path.relative_to(PACKAGE)} imports {other}")
    assert not wrong


def test_rooms_are_imported_by_their_public_names():
    wrong = [
        f"{path.relative_to(PACKAGE)} imports bezoar.{'.'.join(parts)}"
        for path, room, parts in imports()
        if parts[0] in ARROWS and parts[0] != room and any(p.startswith("_") for p in parts[1:])
    ]
    assert not wrong


@pytest.mark.parametrize("room", ARROWS)
def test_every_room_says_what_belongs_there(room):
    documentation = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
    assert documentation is not None
    assert len(documentation.split()) >= 20, documentation
