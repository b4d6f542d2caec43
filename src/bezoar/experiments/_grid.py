"""From one document to many specs: a list anywhere is swept."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from bezoar._checks import instance
from bezoar._errors import BezoarError
from bezoar._options import nearest_first
from bezoar.experiments._spec import CHOICES, LISTS, RunSpec, read_toml

#: The field with the blocks of what should vary together.
GROUP = "group"

#: The largest number of combinations a document may have.
MOST = 100_000


def expand(fields: Mapping[str, Any], folder: Path | None = None) -> list[RunSpec]:
    """The specs of a document in which any field may have several values.

    - A field given as a list is swept: all combinations are made, in the order of the fields in
      the document, the last changing fastest.
    - So is an option in the table of a choice, ``{name = "dirichlet", alpha = [0.1, 1.0]}``, and
      the choice's name; such a table may also be one of several values.
    - ``poisoned`` and ``metrics`` are lists by nature and swept when they hold a list:
      ``poisoned = [[], [3, 4]]``.
    - ``group`` is a list of blocks. The specs are those of the document with the first block's
      fields put in, then those with the second's, and so on.

    What comes up twice is kept once, at its first place.

    Args:
        fields: the document.
        folder: what relative paths in it are relative to.
    """
    instance("fields", fields, Mapping, "the fields of a sweep by name")
    common = {field: value for field, value in fields.items() if field != GROUP}
    if GROUP not in fields:
        return list(dict.fromkeys(_product(common, folder, [*RunSpec.model_fields, GROUP])))
    specs: dict[RunSpec, None] = {}
    blocks = fields[GROUP]
    if not _is_several(blocks) or not blocks or not all(isinstance(b, Mapping) for b in blocks):
        raise BezoarError(f"group: expected blocks of fields, as in [[group]]; found {blocks!r}")
    for number, block in enumerate(blocks, start=1):
        try:
            together = common | dict(block)
            specs |= dict.fromkeys(_product(together, folder, list(RunSpec.model_fields)))
        except BezoarError as error:
            raise BezoarError(f"group {number}: {error}") from None
    return list(specs)


def read_sweep(path: str | Path) -> list[RunSpec]:
    """The specs of a TOML file in which any field may have several values.

    A relative path in it is relative to the file.
    """
    fields = read_toml(path)
    try:
        return expand(fields, Path(path).parent)
    except BezoarError as error:
        raise BezoarError(f"{path}: {error}") from None


def as_specs(found: Any) -> list[RunSpec]:
    """Specs as they are, those of a document, or those of a TOML file."""
    if isinstance(found, str | Path):
        return read_sweep(found)
    if isinstance(found, Mapping):
        return expand(found)
    # A spec is iterable itself: over its fields.
    alone = isinstance(found, RunSpec) or not isinstance(found, Iterable)
    specs: list[Any] = [found] if alone else list(found)
    for spec in specs:
        if not isinstance(spec, RunSpec):
            raise BezoarError(
                "specs: expected a list of RunSpec, the fields of a sweep, or the path of a TOML "
                f"file; found {spec!r}"
            )
    return specs


def _product(
    fields: Mapping[str, Any], folder: Path | None, allowed: list[str]
) -> Iterator[RunSpec]:
    """The spec of every combination of the fields' values."""
    for field in fields:
        if field not in RunSpec.model_fields:
            names = ", ".join(nearest_first(str(field), allowed))
            raise BezoarError(f"no field {field!r}; allowed: {names}")
    axes = []
    for field, value in fields.items():
        items = _items(field, value)
        is_choice = field in CHOICES
        axes.append([c for one in items for c in _choices(field, one)] if is_choice else items)
    count = prod(map(len, axes))
    if count > MOST:
        raise BezoarError(f"sweep: {count:,} combinations found; allowed: at most {MOST:,}")
    return (
        RunSpec.read(dict(zip(fields, values, strict=True)), folder) for values in product(*axes)
    )


def _choices(field: str, item: Any) -> list[Any]:
    """The choices that a table with lists stands for."""
    if not isinstance(item, Mapping):
        return [item]
    axes = []
    for option, value in item.items():
        try:
            axes.append(_items(option, value))
        except BezoarError as error:
            raise BezoarError(f"{field}: {error}") from None
    return [dict(zip(item, values, strict=True)) for values in product(*axes)]


def _items(name: str, value: Any) -> list[Any]:
    if not _is_several(value):
        return [value]
    if name in LISTS and _depth(value) <= LISTS[name]:
        return [value]
    if not value:
        raise BezoarError(f"{name}: expected at least one value, found an empty list")
    return list(value)


def _depth(value: Any) -> int:
    """How many lists there are inside each other."""
    return 1 + max(map(_depth, value), default=0) if _is_several(value) else 0


def _is_several(value: Any) -> bool:
    return isinstance(value, list | tuple | range)
