"""The JSON schema of sweep documents, for editors that complete and check TOML."""

from typing import Any

from bezoar._options import default_options, options_model, summary_of
from bezoar._parts import Maker, parts_of
from bezoar.experiments._choice import UNNAMED, option_text
from bezoar.experiments._grid import GROUP
from bezoar.experiments._spec import CHOICES, LISTS, RunSpec

Schema = dict[str, Any]

#: The draft that editors of TOML understand.
DRAFT = "http://json-schema.org/draft-07/schema#"


def sweep_schema() -> Schema:
    """What a document of a run or a sweep may hold: each field a value, or a list of them."""
    plain = RunSpec.model_json_schema()["properties"].items()
    fields = {field: _field(field, _without_title(schema)) for field, schema in plain}
    block: Schema = {
        "type": "object",
        "description": "Fields that vary together; they are put in for the document's own.",
        "properties": fields,
        "additionalProperties": False,
    }
    blocks = {
        "type": "array",
        "description": "Blocks of fields that vary together; the sweep is the union of them all.",
        "items": {"$ref": "#/definitions/group"},
        "minItems": 1,
    }
    return {
        "$schema": DRAFT,
        "title": "A run or a sweep of bezoar",
        "description": "Any field may be a list: every combination is run.",
        "type": "object",
        "properties": {**fields, GROUP: blocks},
        "additionalProperties": False,
        "definitions": {field: _choice(field) for field in CHOICES} | {"group": block},
    }


def _field(field: str, plain: Schema) -> Schema:
    about = {key: plain.pop(key) for key in ("description", "default") if key in plain}
    if about.get("default", ...) is None:
        del about["default"]  # TOML has no null
    if field in CHOICES:
        plain = {"$ref": f"#/definitions/{field}"}
    elif field == "metrics":
        from bezoar.training import METRICS

        plain = {"type": "array", "items": {"enum": list(METRICS)}}
    elif field == "placement":
        from bezoar.networks import PLACEMENTS

        plain = {"enum": list(PLACEMENTS)}
    elif field == "poisoned":
        plain["anyOf"] = [kind for kind in plain["anyOf"] if kind.get("type") != "null"]
    return about | _several(field, plain)


def _several(name: str, one: Schema) -> Schema:
    """One value, or a list of them."""
    several: Schema = {"type": "array", "items": one, "minItems": 1}
    if name in LISTS:
        # A list of plain values is one value; a list with a list inside is several.
        several["contains"] = {"type": "array"} | (
            {"items": {"type": "array"}} if LISTS[name] > 1 else {}
        )
    return {"anyOf": [*one.get("anyOf", [one]), several]}


def _choice(field: str) -> Schema:
    """A name, a name with options as text, or a table."""
    table = parts_of(field)
    names = list(table)
    forms: list[Schema] = [
        {"enum": names, "description": "A name."},
        {
            "type": "string",
            "description": "A name with options: name:option=value,…, or one's own part: "
            "package.module:Name, path/to/file.py:Name, or a file of data.",
            "pattern": f"^\\s*(({'|'.join(names)})\\s*(:.*)?|.+[.].+)$",
            "examples": [text for name, make in table.items() for text in _examples(name, make)],
        },
        *(_table(name, make) for name, make in table.items()),
        *(
            {"type": "object", "description": f"The same as {name}.", "required": [option]}
            for option, name in UNNAMED.get(field, {}).items()
        ),
        {
            "type": "object",
            "description": "Several names with the options that all of them have.",
            "properties": {"name": {"type": "array", "items": {"enum": names}, "minItems": 1}},
            "required": ["name"],
        },
    ]
    return {"anyOf": forms}


def _examples(name: str, make: Maker) -> list[str]:
    """The name with each of its options, as they are by default; none if some must be given."""
    if any(field.is_required() for field in options_model(make).model_fields.values()):
        return []
    return [
        f"{name}:{option}={option_text(default)}"
        for option, default in default_options(make).items()
        if isinstance(default, bool | int | float | str)
    ]


def _table(name: str, make: Maker) -> Schema:
    """The table of one name with its options."""
    schema = options_model(make).model_json_schema()
    properties: dict[str, Schema] = {"name": {"const": name}}
    for option, about in schema.get("properties", {}).items():
        one = _without_title(about)
        default = {"default": one.pop("default")} if one.get("default") is not None else {}
        one.pop("default", None)
        properties[option] = _several(option, one) | default
    return {
        "type": "object",
        "title": name,
        "description": summary_of(make),
        "properties": properties,
        "required": ["name", *schema.get("required", ())],
        "additionalProperties": False,
    }


def _without_title(schema: Schema) -> Schema:
    """A copy of the schema without the title that pydantic makes of a field's name."""
    return {key: value for key, value in schema.items() if key != "title"}
