"""``bezoar list``."""

import inspect
from typing import Any

from bezoar import aggregators, attacks, data, networks, training
from bezoar._registry import choose, options_of, summary_of
from bezoar.cli._screen import print_json, print_table
from bezoar.report import Table

KINDS: dict[str, dict[str, Any]] = {
    "aggregators": dict(aggregators.AGGREGATORS),
    "networks": dict(networks.NETWORKS),
    "partitions": dict(data.PARTITIONS),
    "attacks": dict(attacks.ATTACKS),
    "schedules": dict(training.SCHEDULES),
    "datasets": dict(data.DATASETS),
    "metrics": {name: metric.title for name, metric in training.METRICS.items()},
    "optimizers": dict(training.OPTIMIZERS),
}


def list_(kind: str | None, json: bool) -> None:
    """Print what can be chosen."""
    kinds = KINDS if kind is None else {kind: choose("kind", kind, KINDS)}
    if json:
        print_json({name: _entries(table) for name, table in kinds.items()})
        return
    for name, table in kinds.items():
        rows = (
            (entry["name"], _options(entry["options"]), entry["summary"])
            for entry in _entries(table)
        )
        print_table(Table.of(name, ("name", "options", "what it is"), rows))


def _entries(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "options": {} if isinstance(entry, str) else _defaults(entry),
            "summary": entry if isinstance(entry, str) else summary_of(entry),
        }
        for name, entry in table.items()
    ]


def _defaults(make: Any) -> dict[str, Any]:
    return {
        name: None if default is inspect.Parameter.empty else default
        for name, default in options_of(make).items()
    }


def _options(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())
