"""Things made from a name and options: one way to look them up and to refuse a wrong option."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from bezoar._errors import BezoarError

T = TypeVar("T")


def nearest_first(found: str, allowed: Iterable[str]) -> list[str]:
    """``allowed`` with the spellings nearest to ``found`` in front."""
    names = list(allowed)
    near = get_close_matches(found, names, n=max(len(names), 1), cutoff=0.5)
    return near + [name for name in names if name not in near]


def choose(kind: str, found: str, table: Mapping[str, T]) -> T:
    """The entry of ``table`` named ``found``, or an error that lists the names there are."""
    if isinstance(found, str) and found in table:
        return table[found]
    allowed = ", ".join(nearest_first(str(found), table))
    raise BezoarError(f"{kind}: {found!r} is not known; allowed: {allowed}")


def check(
    kind: str, name: str, table: Mapping[str, Callable[..., T]], options: Mapping[str, Any]
) -> Callable[..., T]:
    """The maker of the thing called ``name``, if it knows the ``options`` and needs no others."""
    make = choose(kind, name, table)
    signature = inspect.signature(make)
    for option in options:
        if option not in signature.parameters:
            allowed = ", ".join(nearest_first(option, signature.parameters)) or "none"
            raise BezoarError(f"{kind} {name}: no option {option!r}; allowed: {allowed}")
    missing = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty and parameter.name not in options
    ]
    if missing:
        raise BezoarError(f"{kind} {name}: the option {missing[0]!r} must be given")
    return make


def create(
    kind: str, name: str, table: Mapping[str, Callable[..., T]], options: Mapping[str, Any]
) -> T:
    """Make the thing called ``name`` with ``options``, which must be parameters of its maker."""
    make = check(kind, name, table, options)
    return make(**fit(make, options))


def fit(make: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as their maker takes them: ``estimate = true`` where ``"true"`` is a word."""
    defaults = options_of(make)
    return {
        option: str(value).lower()
        if isinstance(value, bool) and isinstance(defaults[option], str)
        else value
        for option, value in options.items()
    }


def options_of(make: Callable[..., Any]) -> dict[str, Any]:
    """The options of a maker with their defaults; ``inspect.Parameter.empty`` where needed."""
    return {name: p.default for name, p in inspect.signature(make).parameters.items()}


def summary_of(entry: Any) -> str:
    """What an entry of a table is, in the first sentence of its documentation."""
    first = (inspect.getdoc(entry) or "").split("\n\n")[0].replace("\n", " ").replace("``", "")
    if first.startswith("`"):  # a link: keep its text
        text, _, rest = first[1:].partition(" <")
        first = text + rest.partition(">`_")[2]
    return first
