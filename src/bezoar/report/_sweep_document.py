"""Runs as the document of a sweep that makes them again."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from bezoar._errors import BezoarError
from bezoar._options import default_options
from bezoar._parts import maker
from bezoar.experiments import CHOICES, LISTS, Choice, RunSpec
from bezoar.report._panels import field_order

#: Fields that are merged into lists, in this order; the others get a block a value.
MERGED = ("aggregator", "seed", *(name for name in CHOICES if name != "aggregator"), "dataset")

#: Characters of a line of TOML, as far as that is possible.
WIDTH = 88

#: For each field the values that a block sweeps.
Block = dict[str, tuple[Any, ...]]


def sweep_document(specs: Iterable[RunSpec]) -> str:
    """A TOML document for ``bezoar sweep`` with just these runs."""
    ordered = sorted(set(specs), key=field_order)
    blocks = _merged([_fields(spec) for spec in ordered])
    common = {
        field: values
        for field, values in blocks[0].items()
        if all(block.get(field) == values for block in blocks)
    }
    text = "".join(_line(field, values) for field, values in common.items())
    if len(blocks) == 1:
        return text or "# every field as it is by default\n"
    for block in blocks:
        own = [_line(field, values) for field, values in block.items() if field not in common]
        text += "\n[[group]]\n" + "".join(own)
    return text


def _fields(spec: RunSpec) -> Block:
    """The fields that may be merged, and those that differ from their defaults."""
    document = {name: getattr(spec, name) for name in RunSpec.model_fields}
    return {
        name: (value,)
        for name, value in document.items()
        if name in MERGED or not _is_default(name, (value,))
    }


def _merged(blocks: list[Block]) -> list[Block]:
    """Fewer blocks with the same runs: those that differ in one field alone become one."""
    for field in MERGED:
        alike: dict[Any, Block] = {}
        for block in blocks:
            rest = tuple((name, values) for name, values in block.items() if name != field)
            if rest not in alike:
                alike[rest] = dict(block)
            else:
                both = (*alike[rest][field], *block[field])
                alike[rest][field] = tuple(dict.fromkeys(both))
        blocks = list(alike.values())
    return [
        {name: values for name, values in block.items() if not _is_default(name, values)}
        for block in blocks
    ]


def _is_default(field: str, values: tuple[Any, ...]) -> bool:
    default = RunSpec.model_fields[field].default
    return (tuple(map(str, values)) if field in CHOICES else values) == (default,)


def _changed(choice: Choice) -> dict[str, Any]:
    """The options that are not at their defaults; all of a part that is not known here."""
    try:
        defaults = default_options(maker(choice.kind, choice.name))
    except BezoarError:
        defaults = {}
    return {
        option: value
        for option, value in choice.options.items()
        if value is not None and (option not in defaults or defaults[option] != value)
    }


def _line(field: str, values: Sequence[Any]) -> str:
    if len(values) == 1:
        return f"{field} = {_value(_swept_once(field, values[0]))}\n"
    items = [_value(value) for value in values]
    text = f"{field} = [{', '.join(items)}]\n"
    if len(text) > WIDTH:
        text = f"{field} = [\n" + "".join(f"    {item},\n" for item in items) + "]\n"
    return text


def _swept_once(name: str, value: Any) -> Any:
    """A value that is a list is put into another list, as a list by itself would be swept."""
    is_list = isinstance(value, list | tuple)
    return [value] if is_list and name not in LISTS else value


def _value(value: Any) -> str:
    if isinstance(value, Choice):
        options = {key: _swept_once(key, option) for key, option in _changed(value).items()}
        if not options:
            return _value(value.name)
        pairs = ({"name": value.name} | options).items()
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in pairs) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's texts are TOML's, but for one character that TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _value(name)
