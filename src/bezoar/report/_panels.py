"""The runs of a store in panels: what varies beside rule and seed tells panels apart."""

from collections.abc import Iterable, Sequence
from typing import Any

from bezoar._parts import parts_of
from bezoar.experiments import CHOICES, FORMAL, RunSpec, StoredRun, spec_of
from bezoar.report._curves import Curve, Panel
from bezoar.report._style import BASELINE

#: Fields that do not tell panels apart: curves do, or nothing that is drawn.
WITHIN = (*FORMAL, "aggregator", "seed")

#: Fields that always stand in a panel's title.
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


def panels_of(runs: Sequence[StoredRun]) -> list[Panel]:
    """Panels of runs that differ in rule and seed alone, in the order of their fields.

    The weighted mean with nobody poisoned is the baseline of the panels that it otherwise fits.
    """
    alike: dict[Fields, list[StoredRun]] = {}
    for run in runs:
        alike.setdefault(_fields(spec_of(run)), []).append(run)
    baselines: dict[Fields, list[StoredRun]] = {}
    poisoned = {_without(fields, POISON) for fields in alike if not _is_clean(fields)}
    for fields in [fields for fields in alike if _is_clean(fields)]:
        others = _without(fields, POISON)
        baselines.setdefault(others, []).extend(filter(_is_mean, alike[fields]))
        if others in poisoned and all(map(_is_mean, alike[fields])):
            del alike[fields]  # the baseline alone, which other panels show
    varying = {fields[0][0] for fields in zip(*alike, strict=True) if len(set(fields)) > 1}
    panels = []
    for fields in sorted(alike, key=field_order):
        curves = _curves(alike[fields])
        if not _is_clean(fields):
            curves += _curves(baselines.get(_without(fields, POISON), []), BASELINE)
        shown = [(name, value) for name, value in fields if name in varying or name in NAMED]
        title = " · ".join(_text(name, value) for name, value in shown)
        panels.append(Panel(title, tuple(curves)))
    return panels


def common_fields(runs: Sequence[StoredRun]) -> str:
    """What all runs have in common, in a sentence."""
    shared = set.intersection(*(set(_fields(spec_of(run))) for run in runs))
    told = [
        _text(field, value)
        for field, value in _fields(spec_of(runs[0]))
        if (field, value) in shared and value is not None and value != 0
    ]
    return f"All runs: {', '.join(told)}."


def _curves(runs: Sequence[StoredRun], name: str | None = None) -> list[Curve]:
    """A curve for each rule and set of options, under its own name unless one is given."""
    rules: dict[Any, list[StoredRun]] = {}
    for run in runs:
        rules.setdefault(spec_of(run).aggregator, []).append(run)
    return [Curve.stored(name or choice.name, several) for choice, several in rules.items()]


def _fields(spec: RunSpec) -> Fields:
    """The fields that tell panels apart, network and partition first."""
    others = (name for name in RunSpec.model_fields if name not in (*WITHIN, *NAMED))
    return tuple((name, getattr(spec, name)) for name in (*NAMED, *others))


def _without(fields: Fields, names: Sequence[str]) -> Fields:
    return tuple((name, value) for name, value in fields if name not in names)


def _is_clean(fields: Fields) -> bool:
    return dict(fields)["poisoned"] in ((), 0)


def _is_mean(run: StoredRun) -> bool:
    return spec_of(run).aggregator.name == "weighted_mean"


def _text(field: str, value: Any) -> str:
    """A field in words; values that explain themselves stand alone."""
    if field == "poisoned":
        if value is None:
            return "poisoned as the network says"
        if isinstance(value, int):
            return f"{value} poisoned"
        return f"poisoned {', '.join(map(str, value))}" if value else "nobody poisoned"
    return WORDS.get(field, "{}").format(value)


def field_order(fields: Iterable[tuple[str, Any]]) -> list[Any]:
    """A sorting key: field after field, choices in the order of their registry."""
    places: list[Any] = []
    for name, value in fields:
        if name in CHOICES:
            table = list(parts_of(name))
            place = table.index(value.name) if value.name in table else len(table)
            options = [(key, _sortable(option)) for key, option in value.options.items()]
            places.append((place, value.name, options))
        else:
            places.append(_sortable(value))
    return places


def _sortable(value: Any) -> tuple[int, float, str]:
    """A sorting key for one value: numbers by size, then everything else as text."""
    is_number = isinstance(value, int | float)
    return (0, value, "") if is_number else (1, 0, str(value))
