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
        rows = []
        for entry in _entries(table):
            options = ", ".join(f"{option}={value}" for option, value in entry["options"].items())
            rows.append((entry["name"], options, entry["summary"]))
        print_table(Table.of(name, ("name", "options", "what it is"), rows))


def _entries(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is told of each entry; an option that must be given has the default ``None``."""
    entries = []
    for name, entry in table.items():
        options, summary = {}, entry
        if not isinstance(entry, str):
            options = dict.fromkeys(options_model(entry).model_fields) | default_options(entry)
            summary = summary_of(entry)
        entries.append({"name": name, "options": options, "summary": summary})
    return entries
