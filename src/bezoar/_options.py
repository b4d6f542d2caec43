"""Options of everything that is chosen by name: one typed definition each.

The parameters of a class or function, with their types and defaults, are its options. Whether a
value is allowed, what an editor suggests, and how a run with every option written out looks, all
follow from them.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json

from bezoar._errors import BezoarError

T = TypeVar("T")

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Factor = Annotated[float, Field(ge=0, allow_inf_nan=False)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class Part:
    """Something that is chosen by name: a frozen dataclass whose typed fields are its options.

    Attributes:
        name: the name for specs and the command line; by default the class's own.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def __post_init__(self) -> None:
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        for option, value in read_options(type(self), given).items():
            object.__setattr__(self, option, value)


def read_options(
    make: Callable[..., Any],
    given: Mapping[str, Any],
    *,
    as_text: bool = False,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Every option of a class or function, with the given values or the defaults.

    Values may be given ``as_text``, as on the command line: ``"no"`` is then false, and the items
    of a list have spaces between them. Relative paths are relative to the ``folder``.

    Raises:
        BezoarError: with the option, what was found and what is allowed.
    """
    model = options_model(make)
    try:
        lists = {name for name in given if as_text and _is_list(model, name)}
        if lists:  # pydantic reads no lists of texts otherwise
            split = {name: given[name].split() if name in lists else given[name] for name in given}
            read = model.model_validate(split)
        elif as_text:
            read = model.model_validate_strings(dict(given))
        else:
            read = model.__pydantic_validator__.validate_json(options_text(given), strict=True)
    except ValidationError as error:
        raise BezoarError(explain(error, given, model.model_fields)) from None
    values = {option: getattr(read, option) for option in model.model_fields}
    if folder is not None:
        for option, value in values.items():
            if isinstance(value, Path):
                values[option] = folder / value
    return values


def plain_options(make: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a document holds them: numbers, texts, booleans and lists."""
    read: dict[str, Any] = options_model(make).model_construct(**values).model_dump(mode="json")
    return read


def default_options(make: Callable[..., Any]) -> dict[str, Any]:
    """The default of every option that has one, as a document holds it."""
    known = options_model(make).model_fields.items()
    return plain_options(
        make, {name: field.default for name, field in known if not field.is_required()}
    )


@cache
def options_model(make: Callable[..., Any]) -> type[BaseModel]:
    """The options of a class or function as a pydantic model."""
    hints = get_type_hints(make, include_extras=True)
    definitions: dict[str, Any] = {}
    for name, parameter in inspect.signature(make).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        guess = Any if default in (..., None) else type(default)
        definitions[name] = (hints.get(name, guess), default)
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())
    with warnings.catch_warnings():  # an option may be called as a method of pydantic's models is
        warnings.filterwarnings("ignore", "Field name .* shadows an attribute", UserWarning)
        return create_model(getattr(make, "__name__", "options"), __config__=config, **definitions)


def _is_list(model: type[BaseModel], option: str) -> bool:
    """Whether the values of an option are lists."""
    field = model.model_fields.get(option)
    kinds = () if field is None else (field.annotation, *get_args(field.annotation))
    return any(get_origin(kind) in (list, tuple) for kind in kinds)


@cache
def path_options(make: Callable[..., Any]) -> tuple[str, ...]:
    """The options that are paths of files."""
    known = options_model(make).model_fields.items()
    return tuple(
        name for name, field in known if Path in (field.annotation, *get_args(field.annotation))
    )


def create(
    kind: str, name: str, table: Mapping[str, Callable[..., T]], options: Mapping[str, Any]
) -> T:
    """Make the thing called ``name`` with ``options``."""
    make = choose(kind, name, table)
    try:
        return make(**read_options(make, options))
    except BezoarError as error:
        raise BezoarError(f"{kind} {name}: {error}") from None


def choose(kind: str, found: str, table: Mapping[str, T]) -> T:
    """The entry of ``table`` named ``found``, or an error that lists the names there are."""
    if isinstance(found, str) and found in table:
        return table[found]
    allowed = ", ".join(nearest_first(str(found), table))
    raise BezoarError(f"{kind}: {found!r} is not known; allowed: {allowed}")


def nearest_first(found: str, allowed: Iterable[str]) -> list[str]:
    """``allowed`` with the spellings nearest to ``found`` in front."""
    names = list(allowed)
    near = get_close_matches(found, names, n=max(len(names), 1), cutoff=0.5)
    return near + [name for name in names if name not in near]


def summary_of(entry: Any) -> str:
    """What an entry of a table is, in the first sentence of its documentation."""
    first = (inspect.getdoc(entry) or "").split("\n\n")[0].replace("\n", " ").replace("``", "")
    if first.startswith("`"):  # a link: keep its text
        text, _, rest = first[1:].partition(" <")
        first = text + rest.partition(">`_")[2]
    return first


def explain(
    error: ValidationError, given: Mapping[str, Any], allowed: Iterable[str], what: str = "option"
) -> str:
    """One sentence for each field that is wrong: its name, what was found, what is allowed.

    ``allowed`` are the names of all fields, and ``what`` is what a field is called.
    """
    names = list(allowed)
    wrong: dict[str, list[ErrorDetails]] = {}
    for item in error.errors():
        wrong.setdefault(str(item["loc"][0]) if item["loc"] else "spec", []).append(item)
    return "; ".join(
        _sentence(field, items, given.get(field), names, what) for field, items in wrong.items()
    )


def first_problem(error: ValidationError, whole: str = "it") -> str:
    """Where a document is wrong first, and how; ``whole`` is what the document itself is called."""
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc'])) or whole}: {problem['msg']}"


def _sentence(
    field: str, items: list[ErrorDetails], found: Any, allowed: list[str], what: str
) -> str:
    first = items[0]
    if first["type"] == "extra_forbidden":
        return f"no {what} {field!r}; allowed: {', '.join(nearest_first(field, allowed)) or 'none'}"
    if first["type"] == "missing" and len(first["loc"]) == 1:
        return f"the {what} {field!r} must be given"
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        return message if message.startswith((f"{field}:", f"{field} ")) else f"{field}: {message}"
    expected = " or ".join(dict.fromkeys(map(_expected, items)))
    return f"{field}: expected {expected}, found {found!r}"


#: What pydantic asks for by its errors' types, in our words.
_WORDS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "int_parsing_size": "an integer of fewer digits",
    "int_type": "an integer",
    "list_type": "a list",
    "missing": "more items",
    "string_type": "a text",
    "too_long": "fewer items",
    "tuple_type": "a list",
}


def _expected(item: ErrorDetails) -> str:
    """What would be right instead, as the end of "expected …"."""
    limits = {"ge": "at least {}", "gt": "more than {}", "le": "at most {}", "lt": "less than {}"}
    for name, words in limits.items():
        if name in item.get("ctx", {}):
            return f"a number of {words.format(item['ctx'][name])}{_place(item)}"
    message = item["msg"].removeprefix("Input should be ")
    return _WORDS.get(item["type"], message) + _place(item)


def _place(item: ErrorDetails) -> str:
    """Which item of a list is wrong, or has the wrong length."""
    places = [place for place in item["loc"] if isinstance(place, int)]
    if item["type"] == "missing":
        places = places[:-1]  # the last one is that of the item that is not there
    word = "in" if item["type"] in ("missing", "too_long") else "as"
    return f" {word} item {places[-1] + 1}" if places else ""


def options_text(given: Mapping[str, Any]) -> bytes:
    """Options as JSON; numbers of numpy and torch are Python's.

    Raises:
        BezoarError: for what a document cannot hold.
    """
    for option, value in given.items():
        try:
            to_json(value, fallback=plain_number)
        except PydanticSerializationError:
            raise BezoarError(
                f"{option}: expected a number, a text, true or false, or a list of them; found "
                f"{value!r}"
            ) from None
    return to_json(dict(given), fallback=plain_number)


def plain_number(value: Any) -> Any:
    """A number of numpy or torch as Python's; anything else as it is."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    return value
