"""A store's runs in charts: what varies beside rule and seed tells them apart."""

from collections.abc import Iterable, Sequence
from typing import Any

from bezoar.experiments import BASELINE, RunSpec, StoredRun
from bezoar.experiments._known import CHOICES, known
from bezoar.experiments._rows import FORMAL
from bezoar.report._html_charts import Chart, Line

#: Fields that do not tell charts apart: a curve or a seed each, or nothing that is drawn.
WITHIN = (*FORMAL, "aggregator", "seed")

#: Fields that always stand in a chart's title.
NAMED = ("network", "partition")

#: Fields that mean nothing to a run in which nobody is poisoned.
POISON = ("poisoned", "attack")

#: How values are told that would not be understood alone.
WORDS = {
    "weight_decay": "weight decay {}",
    "iterations": "{:,} iterations",
    "every": "measured every {}",
    "device": "on {}",
}

Fields = tuple[tuple[str, Any], ...]


def group_runs(runs: Sequence[StoredRun]) -> list[Chart]:
    """Charts of runs that differ in rule and seed alone, in the order of their fields.

    The weighted mean with nobody poisoned is the baseline of the charts that it otherwise fits.
    """
    groups: dict[Fields, list[StoredRun]] = {}
    for run in runs:
        groups.setdefault(_fields(run.spec), []).append(run)
    baselines: dict[Fields, list[StoredRun]] = {}
    poisoned = {_without(fields, POISON) for fields in groups if not _is_clean(fields)}
    for fields in [fields for fields in groups if _is_clean(fields)]:
        others = _without(fields, POISON)
        baselines.setdefault(others, []).extend(filter(_is_mean, groups[fields]))
        if others in poisoned and all(map(_is_mean, groups[fields])):
            del groups[fields]  # the baseline alone, which other charts show
    varying = _varying(list(groups))
    charts = []
    for fields in sorted(groups, key=field_order):
        lines = _lines(groups[fields])
        if not _is_clean(fields):
            lines += _lines(baselines.get(_without(fields, POISON), []), BASELINE)
        charts.append(Chart(_title(fields, varying), tuple(lines)))
    return charts


def common_fields(runs: Sequence[StoredRun]) -> str:
    """What all runs have in common, in a sentence."""
    first = _fields(runs[0].spec)
    shared = [
        (field, value)
        for field, value in first
        if all(dict(_fields(run.spec))[field] == value for run in runs)
    ]
    told = [_text(field, value) for field, value in shared if value is not None and value != 0]
    return f"All runs: {', '.join(told)}."


def _lines(runs: Sequence[StoredRun], name: str | None = None) -> list[Line]:
    """A curve for each rule and set of options, under its own name unless one is given."""
    rules: dict[Any, list[StoredRun]] = {}
    for run in runs:
        rules.setdefault(run.spec.aggregator, []).append(run)
    return [Line.of(name or choice.name, several) for choice, several in rules.items()]


def _fields(spec: RunSpec) -> Fields:
    """What tells charts apart, the network first: it is what one looks for."""
    others = (name for name in RunSpec.model_fields if name not in (*WITHIN, *NAMED))
    return tuple((name, getattr(spec, name)) for name in (*NAMED, *others))


def _without(fields: Fields, names: Sequence[str]) -> Fields:
    return tuple((name, value) for name, value in fields if name not in names)


def _is_clean(fields: Fields) -> bool:
    return dict(fields)["poisoned"] in ((), 0)


def _is_mean(run: StoredRun) -> bool:
    return run.spec.aggregator.name == "weighted_mean"


def _varying(groups: Sequence[Fields]) -> set[str]:
    return {several[0][0] for several in zip(*groups, strict=True) if len(set(several)) > 1}


def _title(fields: Fields, varying: set[str]) -> str:
    shown = [(name, value) for name, value in fields if name in varying or name in NAMED]
    return " · ".join(_text(name, value) for name, value in shown)


def _text(field: str, value: Any) -> str:
    """A field in words; a choice, the dataset and the model speak for themselves."""
    if field == "poisoned":
        if value is None:
            return "poisoned as the network says"
        if isinstance(value, int):
            return f"{value} poisoned"
        return f"poisoned {', '.join(map(str, value))}" if value else "nobody poisoned"
    return WORDS.get(field, "{}").format(value)


def field_order(fields: Iterable[tuple[str, Any]]) -> list[Any]:
    """What to sort by: field after field, what can be chosen in the order of its table."""
    places: list[Any] = []
    for name, value in fields:
        if name in CHOICES:
            table = list(known()[name])
            place = table.index(value.name) if value.name in table else len(table)
            options = [(key, _sortable(option)) for key, option in value.options.items()]
            places.append((place, value.name, options))
        else:
            places.append(_sortable(value))
    return places


def _sortable(value: Any) -> tuple[int, float, str]:
    """Numbers by size, before texts and the like."""
    is_number = isinstance(value, int | float)
    return (0, value, "") if is_number else (1, 0, str(value))
