"""A part of a run, chosen by name, with every option written out."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema, from_json

from bezoar import _parts
from bezoar._errors import BezoarError
from bezoar._options import (
    default_options,
    options_model,
    options_text,
    path_options,
    plain_options,
    read_options,
)

#: How the names of files end that stand for a part, and what reads them.
FILES = {
    "network": (
        "from_file",
        (".graphml", ".gexf", ".gml", ".json", ".csv", ".tsv", ".edges", ".edgelist", ".txt"),
    ),
    "dataset": ("npz", (".npz",)),
    "start": ("weights", (".safetensors",)),
}

#: The name that a table without one stands for, by an option in it.
UNNAMED = {"network": {"edges": "from_edges", "over_time": "over_time"}}

#: The network that is made of others, and the option that has them.
OVER_TIME, NETWORKS = "over_time", "networks"


@dataclass(frozen=True)
class Choice:
    """Something chosen by name, with its options.

    Written as ``"dirichlet"``, as ``"dirichlet:alpha=0.5"``, or as a table
    ``{name = "dirichlet", alpha = 0.5}``.

    Attributes:
        kind: the field of a spec that it is for.
        name: a registered name, or ``package.module:Name`` or ``path/to/file.py:Name``.
        options: every option, as a document holds it.
        part: the part itself, where it was given as an object that has no name.
        text: as it is typed, without options at their defaults.
    """

    kind: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    part: Any = None
    text: str = field(default="", compare=False)

    def __hash__(self) -> int:
        return hash((self.kind, self.name, _hashable(self.options), id(self.part)))

    def __str__(self) -> str:
        return self.text or _typed(self.name, self.options)

    def document(self) -> str | dict[str, Any]:
        """As a document holds it, every option written out."""
        return {"name": self.name, **self.options} if self.options else self.name

    def make(self, **instead: Any) -> Any:
        """The part; with ``instead``, values of options that take the place of its own."""
        if self.part is not None:
            return self.part
        make = _parts.maker(self.kind, self.name)
        try:
            made = make(**read_options(make, {**self.options, **instead}))
        except (BezoarError, TypeError) as error:
            raise BezoarError(f"{self.kind} {self.name}: {error}") from error
        return _parts.check_made(self.kind, self.name, made)

    def paths(self) -> tuple[str, ...]:
        """The options that are paths of files."""
        return path_options(_parts.maker(self.kind, self.name)) if self.part is None else ()

    def inner(self) -> "tuple[Choice, ...]":
        """The choices that it is made of: the networks of one that changes over time."""
        if (self.kind, self.name) != ("network", OVER_TIME):
            return ()
        return tuple(recall_choice(self.kind, each) for each in self.options[NETWORKS])

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(lambda choice: choice.document())
        return core_schema.is_instance_schema(cls, serialization=written)

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, __: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {}


def read_choice(kind: str, found: Any, folder: Path | None = None) -> Choice:
    """A choice as it is typed, as a table, or as the part itself.

    ``kind`` is the field of a spec that it is for; relative paths are relative to the ``folder``.

    Raises:
        BezoarError: with what was found and what is allowed.
    """
    if isinstance(found, Choice):
        if found.kind != kind:
            raise BezoarError(f"{kind}: expected a choice for it, found one for {found.kind}")
        return found if found.part is not None else _read(kind, found.name, found.options)
    if isinstance(found, str | Path):
        return _read(kind, *split_choice(kind, str(found)), True, folder)
    if isinstance(found, Mapping):
        meant = (name for option, name in UNNAMED.get(kind, {}).items() if option in found)
        name = found.get("name", next(meant, None))
        if not isinstance(name, str):
            raise BezoarError(
                f"{kind}: expected a table with a name, as in {{name = …}}; found {found!r}"
            )
        options = {key: value for key, value in found.items() if key != "name"}
        if name == OVER_TIME in options:
            options[NETWORKS] = options.pop(OVER_TIME)
        if _parts.KINDS[kind].compose and "before" in options:
            name = "+".join([*_names("before", options.pop("before")), name])
        return _read(kind, name, options, False, folder)
    return _of_object(kind, found)


def _names(field: str, found: Any) -> list[str]:
    """A list of names, or one name."""
    names = [found] if isinstance(found, str) else found
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise BezoarError(f"{field}: expected a list of names, found {found!r}")
    return list(names)


def recall_choice(kind: str, document: Any, text: str = "") -> Choice:
    """A choice that was once read; its name is not looked up again."""
    if isinstance(document, str):
        return Choice(kind, document, text=text)
    if not isinstance(document, Mapping) or not isinstance(document.get("name"), str):
        raise BezoarError(f"{kind}: expected a table with a name, found {document!r}")
    options = {option: value for option, value in document.items() if option != "name"}
    return Choice(kind, document["name"], options, text=text)


def option_text(value: Any) -> str:
    """An option's value as it is typed; the items of a list have spaces between them."""
    if isinstance(value, list) and not any(isinstance(item, list | dict) for item in value):
        return " ".join(map(option_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def split_choice(kind: str, text: str) -> tuple[str, dict[str, str]]:
    """A choice as it is typed, as a name and the texts of options.

    The name of a file stands for what reads it: ``office.csv``, ``office.csv:symmetric=true``.
    """
    reader, endings = FILES.get(kind, ("", ()))
    if text.lower().endswith(endings) and (":" not in text or "=" not in text):
        return reader, {"path": text}
    name, rest = _parts.split_own(kind, text)
    options: dict[str, str] = {}
    if name.lower().endswith(endings):
        name, options = reader, {"path": name}
    elif name.endswith(".py"):
        raise BezoarError(f"{kind}: expected what to take from the file, as in {name}:Name")
    elif endings and Path(name).is_file():
        raise BezoarError(
            f"{kind}: expected a file that ends in {', '.join(endings)}; found {name}"
        )
    for part in filter(None, (part.strip() for part in rest.split(","))):
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not option:
            raise BezoarError(f"{kind}: options are written name=value, found {part!r}")
        if option in options:
            raise BezoarError(f"{kind} {name}: {option} is given twice")
        options[option] = value
    return name, options


def _read(
    kind: str,
    name: str,
    options: Mapping[str, Any],
    as_text: bool = False,
    folder: Path | None = None,
) -> Choice:
    if ".py:" in name and folder is not None:
        before = _parts.names_before(kind, name)
        own = folder / name.removeprefix("".join(f"{each}+" for each in before))
        name = "+".join([*before, str(own)])
    make = _parts.maker(kind, name)
    try:
        found = _checked(kind, name, make, options_text(options), as_text, folder)
        return _with_inner(found, folder) if (kind, name) == ("network", OVER_TIME) else found
    except BezoarError as error:
        raise BezoarError(f"{kind} {name}: {error}") from None


def _with_inner(found: Choice, folder: Path | None) -> Choice:
    """A network over time with the options of its networks written out, too."""
    inner = [read_choice("network", each, folder) for each in found.options[NETWORKS]]
    options = {**found.options, NETWORKS: [each.document() for each in inner]}
    text = f"{found.name}:{NETWORKS}={' '.join(map(str, inner))}"
    return replace(found, options=options, text=text)


@lru_cache(maxsize=4096)
def _checked(
    kind: str, name: str, make: _parts.Maker, options: bytes, as_text: bool, folder: Path | None
) -> Choice:
    values = read_options(make, from_json(options), as_text=as_text, folder=folder)
    if isinstance(make, type):
        make(**values)  # may refuse a combination; networks and datasets are made when needed
    return _choice(kind, name, make, values)


def _choice(kind: str, name: str, make: _parts.Maker, values: Mapping[str, Any]) -> Choice:
    options, defaults, given = plain_options(make, values), default_options(make), name
    changed = {o: v for o, v in options.items() if o not in defaults or defaults[o] != v}
    if name == FILES.get(kind, ("",))[0]:
        name = changed.pop("path")
    return Choice(kind, given, options, text=_typed(name, changed))


def _typed(name: str, options: Mapping[str, Any]) -> str:
    told = ",".join(f"{option}={_short(value)}" for option, value in options.items())
    return f"{name}:{told}" if told else name


def _short(value: Any) -> str:
    """An option's value as it is typed; long lists, which nobody types, in a few words."""
    text = option_text(value)
    return text if len(text) <= 60 or not isinstance(value, list) else f"[{len(value)} items]"


def _of_object(kind: str, found: Any) -> Choice:
    part = _parts.as_part(kind, found)
    if not _parts.is_part(kind, part):
        raise BezoarError(
            f"{kind}: expected a name, a table with a name, or a {_parts.base_name(kind)}; found "
            f"{found!r}{'; several values are for sweeps' if isinstance(found, list) else ''}"
        )
    name = _parts.name_of(kind, part)
    if name is None or not isinstance(_parts.maker(kind, name), type):
        return Choice(kind, getattr(part, "name", "") or type(part).__name__, part=part)
    make = _parts.maker(kind, name)
    values = {option: getattr(part, option) for option in options_model(make).model_fields}
    return _choice(kind, name, make, values)


def _hashable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((key, _hashable(value[key])) for key in sorted(value))
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    hash(value)
    return value
