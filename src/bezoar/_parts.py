"""The parts of a run that are chosen by name: where each kind is found, and users' own.

A choice is a registered name (``ios``), a name in a module (``package.module:Rule``), or a name in
a file (``path/to/rules.py:Rule``).
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bezoar._errors import BezoarError
from bezoar._files import digest
from bezoar._options import choose

Maker = Callable[..., Any]

#: What the names of modules that are made from users' files begin with; a checksum follows.
OWN = "_bezoar_own_"


class Kind(NamedTuple):
    """Where the parts of one kind are found: a package, and the names of objects in it.

    Attributes:
        room: the package that has them.
        table: the name there of the dictionary from names to makers.
        base: the name there of the class that every part of this kind is an instance of.
        adapt: the name there of what turns a user's function into a maker of such parts, where
            the function alone is not one.
        take: the name there of what turns an object of another kind into such a part, if it can.
        compose: the name there of what makes one part of several names, as in ``nnm+krum``.
    """

    room: str
    table: str
    base: str
    adapt: str = ""
    take: str = ""
    compose: str = ""


#: The kinds of parts, by the field of a spec that chooses one.
KINDS = {
    "network": Kind("networks", "NETWORKS", "Network", take="as_network"),
    "dataset": Kind("data", "DATASETS", "Dataset"),
    "partition": Kind("data", "PARTITIONS", "Partitioner"),
    "model": Kind("models", "MODELS", "Model", "network_model"),
    "start": Kind("models", "STARTS", "Start"),
    "attack": Kind("attacks", "ATTACKS", "Attack", compose="compose"),
    "aggregator": Kind("aggregators", "AGGREGATORS", "Aggregator", compose="compose"),
    "algorithm": Kind("training", "ALGORITHMS", "Algorithm"),
    "optimizer": Kind("training", "OPTIMIZERS", "Optimizer"),
    "schedule": Kind("training", "SCHEDULES", "Schedule"),
}


def parts_of(kind: str) -> MutableMapping[str, Maker]:
    """Every part of a kind that has a name, those of installed packages included."""
    table: MutableMapping[str, Maker] = getattr(_room(kind), KINDS[kind].table)
    for point in _entry_points(kind):
        if point.name not in table:
            with _told(f"{kind} {point.name}: the entry point {point.value!r} cannot be loaded"):
                table[point.name] = _adapted(kind, point.load())
    return table


def register(make: Maker, kind: str | None = None, name: str | None = None) -> Maker:
    """Make a part of your own known by a name, as in a notebook.

    A class can be decorated with it. Packages declare theirs as entry points instead, in the group
    ``bezoar.aggregator``, ``bezoar.network`` and so on.

    Args:
        make: a class such as a rule, or a function that returns a network, a dataset, ….
        kind: of :data:`KINDS`; of a class it is known.
        name: by default the class's ``name``, or the function's own.

    Returns:
        What was given.
    """
    found = kind or next((kind for kind in KINDS if _is_class_of(make, kind)), None)
    if found is None:
        raise BezoarError(f"kind: must be given for {make!r}; allowed: {', '.join(KINDS)}")
    choose("kind", found, KINDS)
    if not callable(make):
        raise BezoarError(f"make: expected a class or a function, found {make!r}")
    name = name or getattr(make, "name", "") or getattr(make, "__name__", "")
    if not name or ":" in name or names_before(found, name):
        raise BezoarError(f"name: expected a text without a colon or a plus, found {name!r}")
    parts_of(found)[name] = _adapted(found, make)
    return make


def maker(kind: str, name: str) -> Maker:
    """What makes the part of a kind that is called ``name``."""
    table = parts_of(kind)
    if before := names_before(kind, name):
        rest = maker(kind, name.removeprefix("+".join(before) + "+"))
        composed: Maker = getattr(_room(kind), KINDS[kind].compose)(before, rest)
        return composed
    if not isinstance(name, str) or name in table or ":" not in name:
        return choose(kind, name, table)
    place, _, attribute = name.rpartition(":")
    try:
        found = getattr(_module(place), attribute)
    except AttributeError:
        raise BezoarError(f"{kind}: {place} has no {attribute!r}") from None
    except BezoarError as error:
        raise BezoarError(f"{kind}: {error}") from None
    if not callable(found):
        raise BezoarError(f"{kind}: {name} is no class or function, found {found!r}")
    return _adapted(kind, found)


def names_before(kind: str, name: str) -> tuple[str, ...]:
    """The names in front of the last ``+`` of a part that is composed; of others none.

    In the path of a user's file a ``+`` means nothing.
    """
    if not KINDS[kind].compose or not isinstance(name, str):
        return ()
    *before, _ = name.partition(":")[0].split("+")
    return tuple(before) if all(each.isidentifier() for each in before) else ()


def check_made(kind: str, name: str, made: Any) -> Any:
    """The part that a maker returned, if it is one of its kind."""
    made = _taken(kind, made)
    if not is_part(kind, made):
        raise BezoarError(
            f"{kind} {name}: expected a {base_name(kind)}, found {type(made).__name__}"
        )
    return made


def is_part(kind: str, found: Any) -> bool:
    """Whether something is a part of a kind."""
    return isinstance(found, getattr(_room(kind), KINDS[kind].base))


def as_part(kind: str, found: Any) -> Any:
    """The part that an object is or stands for; a function gives the part with its defaults."""
    found = _taken(kind, found)
    if KINDS[kind].adapt and callable(found) and not is_part(kind, found):
        return _adapted(kind, found)()
    return found


def _taken(kind: str, found: Any) -> Any:
    """The part that an object stands for, as a networkx graph stands for a network."""
    return getattr(_room(kind), KINDS[kind].take)(found) if KINDS[kind].take else found


def base_name(kind: str) -> str:
    """The class that every part of a kind is an instance of, as users import it."""
    return f"bezoar.{KINDS[kind].room}.{KINDS[kind].base}"


def name_of(kind: str, part: Any) -> str | None:
    """The name under which an object's class can be found again, if there is one."""
    of = type(part)
    for name, make in parts_of(kind).items():
        if make is of:
            return name
    if names_before(kind, getattr(of, "name", "")):
        return str(of.name)
    if of.__module__.partition(".")[0] in ("__main__", "builtins", "bezoar"):
        return None
    return f"{of.__module__}:{of.__qualname__}"


def source_of(kind: str, name: str) -> str | None:
    """A checksum of the code that defines a part; ``None`` for the package's own.

    Raises:
        BezoarError: if that code cannot be found, as for a class typed into an interpreter.
    """
    make = inspect.unwrap(maker(kind, name))
    module = getattr(make, "__module__", "") or ""
    top = module.partition(".")[0]
    if top == "bezoar":
        return None
    if top.startswith(OWN):
        return top.removeprefix(OWN)
    package = sys.modules.get(top)
    if module != "__main__" and package is not None and hasattr(package, "__path__"):
        files = (path for folder in package.__path__ for path in Path(folder).rglob("*.py"))
        # Several of its modules may have a part of this name.
        return digest(b"".join([module.encode(), *(path.read_bytes() for path in sorted(files))]))
    try:
        file = inspect.getsourcefile(make)
        if file and Path(file).is_file():
            return digest(Path(file).read_bytes())
        return digest(inspect.getsource(make).encode())
    except (OSError, TypeError):
        raise BezoarError(
            f"{kind} {name}: its source cannot be found, so its runs cannot be told apart; put it "
            "into a file and choose it as path/to/file.py:Name"
        ) from None


def split_own(kind: str, text: str) -> tuple[str, str]:
    """A choice as it is typed, cut into its name and its options.

    ``"dirichlet:alpha=1"`` has the options ``"alpha=1"``; so has ``"mine.py:Parts:alpha=1"``.
    """
    name, _, rest = text.partition(":")
    attribute, _, more = rest.partition(":")
    if attribute.strip().isidentifier() and name.strip() not in parts_of(kind):
        return f"{name.strip()}:{attribute.strip()}", more
    return name.strip(), rest


def _is_class_of(make: Maker, kind: str) -> bool:
    return isinstance(make, type) and issubclass(make, getattr(_room(kind), KINDS[kind].base))


def _adapted(kind: str, make: Maker) -> Maker:
    """What makes parts of a kind, for a class or function that may be a user's own."""
    if not KINDS[kind].adapt or _is_class_of(make, kind):
        return make
    adapted: Maker = getattr(_room(kind), KINDS[kind].adapt)(make)
    return adapted


@cache
def _room(kind: str) -> ModuleType:
    return importlib.import_module(f"bezoar.{KINDS[kind].room}")


@cache
def _entry_points(kind: str) -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group=f"bezoar.{kind}"))


def _module(place: str) -> ModuleType:
    """A module by its name, or by the path of its file."""
    if place.endswith(".py"):
        return _module_in_file(Path(place))
    with _told(f"the module {place!r} cannot be imported"):
        return importlib.import_module(place)


def _module_in_file(path: Path) -> ModuleType:
    """The module in a file; read anew when the file has changed.

    What is run is what was read: a run's identity covers this very content.
    """
    try:
        source = path.read_bytes()
    except OSError as error:
        raise BezoarError(f"cannot read {path}: {error.strerror}") from None
    name = OWN + digest(source)
    if name not in sys.modules:
        module = ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module
        try:
            with _told(f"{path} cannot be run"):
                exec(compile(source, str(path), "exec"), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Tell a user what could not be done with code of their own, and why."""
    try:
        yield
    except Exception as error:
        raise BezoarError(f"{what}: {type(error).__name__}: {error}") from error
