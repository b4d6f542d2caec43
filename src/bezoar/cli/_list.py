"""``bezoar list``."""

from collections.abc import Mapping
from typing import Any

from bezoar import training
from bezoar._options import choose, default_options, options_model, summary_of
from bezoar._parts import KINDS, parts_of
from bezoar.cli._screen import print_json, print_table
from bezoar.report import Table


def list_(kind: str | None, json: bool) -> None:
    """Print what can be chosen."""
    tables: dict[str, Mapping[str, Any]] = {f"{kind}s": parts_of(kind) for kind in KINDS}
    tables["metrics"] = {name: metric.title for name, metric in training.METRICS.items()}
    kinds = tables if kind is None else {kind: choose("kind", kind, tables)}
    if json:
        print_json({name: _entries(table) for name, table in kinds.items()})
        return
    for name, table in kinds.items():
        rows = (
            (entry["name"], _options(entry["options"]), entry["summary"])
            for entry in _entries(table)
        )
        print_table(Table.of(name, ("name", "options", "what it is"), rows))


def _entries(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "options": {} if isinstance(entry, str) else _defaults(entry),
            "summary": entry if isinstance(entry, str) else summary_of(entry),
        }
        for name, entry in table.items()
    ]


def _defaults(make: Any) -> dict[str, Any]:
    """Every option with its default; ``None`` where it must be given."""
    return dict.fromkeys(options_model(make).model_fields) | default_options(make)


def _options(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())
