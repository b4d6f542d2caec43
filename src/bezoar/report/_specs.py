"""Runs by their specs: in panels, and as the document of a sweep that computes them again."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bezoar._errors import BezoarError
from bezoar._options import default_options
from bezoar._parts import maker, names_before, parts_of
from bezoar.experiments import CHOICES, FORMAL, LISTS, Choice, RunSpec, StoredRun, spec_of
from bezoar.report._page import Curve, Page, Panel, Table
from bezoar.report._style import BASELINE
from bezoar.report._tables import told_apart

#: Fields in which the runs of a panel may differ.
WITHIN = (*FORMAL, "aggregator", "seed")

#: Fields that come first, and are in every panel's title.
NAMED = ("network", "partition")
ORDER = (*NAMED, *(name for name in RunSpec.model_fields if name not in NAMED))

#: Fields that do not matter to a run in which nobody is poisoned.
POISON = ("poisoned", "placement", "attack")

#: Fields whose values are understood alone, and how those of some others are written.
ALONE = {*CHOICES, "dtype"} - {"start", "algorithm"}
WORDS = {"iterations": "{:,} iterations", "every": "measured every {}", "device": "on {}"}

#: Fields whose values are merged into lists, in this order; others get a block for each value.
MERGED = ("aggregator", "seed", *(name for name in CHOICES if name != "aggregator"))

#: For each field the values that a block sweeps.
Block = dict[str, tuple[Any, ...]]


def panels_of(runs: Sequence[StoredRun]) -> list[Panel]:
    """Panels of runs that differ only in rule and seed, in the order of their fields.

    The weighted mean with nobody poisoned is the baseline of all panels whose other fields agree.
    """
    alike: dict[RunSpec, list[StoredRun]] = {}
    for run in runs:
        alike.setdefault(_without(spec_of(run), WITHIN), []).append(run)
    poisoned = {_without(spec, POISON) for spec in alike if not _is_clean(spec)}
    baselines: dict[RunSpec, list[StoredRun]] = {}
    for spec in filter(_is_clean, list(alike)):
        others = _without(spec, POISON)
        means = [run for run in alike[spec] if spec_of(run).aggregator.name == "weighted_mean"]
        baselines.setdefault(others, []).extend(means)
        if others in poisoned and len(means) == len(alike[spec]):
            del alike[spec]  # nothing but a baseline, which other panels show
    values = {name: {getattr(spec, name) for spec in alike} for name in ORDER}
    texts = {name: told_apart({v: _text(name, v) for v in found}) for name, found in values.items()}
    shown = [name for name in ORDER if name in NAMED or len(texts[name]) > 1]
    panels = []
    for spec in sorted(alike, key=lambda spec: field_order(spec, ORDER)):
        curves = _curves(alike[spec])
        if not _is_clean(spec):
            curves += _curves(baselines.get(_without(spec, POISON), []), BASELINE)
        title = " · ".join(texts[name][getattr(spec, name)] for name in shown)
        panels.append(Panel(title, tuple(curves)))
    return panels


def newest(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The last run of each spec, whatever is measured.

    A store has several runs of a spec if files, own code or the package have changed between them.
    They are not different seeds.
    """

    def order(run: StoredRun) -> tuple[Any, ...]:
        """By when their training ended; those of which nothing says it come first."""
        return run.trained is not None, run.trained and run.trained[1], run.key

    found: dict[RunSpec, StoredRun] = {}
    for run in sorted(runs, key=order):
        found[_without(spec_of(run), FORMAL)] = run
    return sorted(found.values(), key=lambda run: run.key)


def short_names(specs: Iterable[RunSpec]) -> dict[str, str]:
    """Shorter texts for choices that name files by their paths: the names of the files.

    Choices that would then be told apart by nothing are left out.
    """
    choices = [getattr(spec, field) for spec in specs for field in CHOICES]
    found = {str(choice): _short(choice) for choice in choices}
    several = Counter(found.values())
    return {text: name for text, name in found.items() if text != name and several[name] == 1}


def _short(choice: Choice) -> str:
    text = str(choice)
    before = "".join(f"{name}+" for name in names_before(choice.kind, choice.name))
    for value in (choice.name.removeprefix(before), *choice.options.values()):
        if isinstance(value, str) and "/" in value:
            text = text.replace(value, value.rstrip("/").rpartition("/")[2])
    return text.removeprefix(f"{choice.name}:path=")


def renamed(shown: Any, names: Mapping[str, str]) -> Any:
    """A page, table or text with other names in it."""
    if isinstance(shown, str):
        for text, name in sorted(names.items(), reverse=True):  # longer ones first
            shown = shown.replace(text, name)
        return shown
    if isinstance(shown, tuple):
        return tuple(renamed(item, names) for item in shown)
    if isinstance(shown, Panel):
        return replace(shown, title=renamed(shown.title, names))
    if isinstance(shown, Page | Table):
        fields = {name: renamed(value, names) for name, value in shown}
        return shown.model_copy(update=fields)
    return shown


def common_fields(runs: Sequence[StoredRun]) -> str:
    """The fields that all runs share, in a sentence; some only where they are not as usual."""
    specs, default = [spec_of(run) for run in runs], RunSpec()
    values = {name: {getattr(spec, name) for spec in specs} for name in ORDER if name not in WITHIN}
    shared = {name: found.pop() for name, found in values.items() if len(found) == 1}
    always = {*ALONE, *WORDS}
    told = [n for n, value in shared.items() if n in always or value != getattr(default, n)]
    return f"All runs: {', '.join(_text(name, shared[name]) for name in told)}."


def field_order(spec: RunSpec, fields: Iterable[str] = RunSpec.model_fields) -> list[Any]:
    """A sorting key: field after field."""
    return [_place(name, getattr(spec, name)) for name in fields]


def _place(name: str, value: Any) -> tuple[Any, ...]:
    """A sorting key: choices as they are listed, numbers by size, everything else as text."""
    if isinstance(value, Choice):
        names = list(parts_of(name))
        place = names.index(value.name) if value.name in names else len(names)
        return place, value.name, [(key, _place(key, item)) for key, item in value.options.items()]
    return (0, value, "") if isinstance(value, int | float) else (1, 0, str(value))


def _curves(runs: Sequence[StoredRun], rule: str = "") -> list[Curve]:
    """A curve for each rule and set of options; ``rule`` is a name to take instead of its own."""
    rules: dict[Choice, list[StoredRun]] = {}
    for run in runs:
        rules.setdefault(spec_of(run).aggregator, []).append(run)
    return [Curve.stored(several, rule) for several in rules.values()]


def _without(spec: RunSpec, names: Sequence[str]) -> RunSpec:
    """A spec with some fields blank, so that specs which differ only in them are equal."""
    return spec.model_copy(update=dict.fromkeys(names))


def _is_clean(spec: RunSpec) -> bool:
    return spec.poisoned in ((), 0)


def _text(field: str, value: Any) -> str:
    """A field in words."""
    if field == "poisoned":
        if value is None:
            return "poisoned as the network says"
        if isinstance(value, int):
            return f"{value} poisoned"
        return f"poisoned {', '.join(map(str, value))}" if value else "nobody poisoned"
    words = "{}" if field in ALONE else WORDS.get(field, f"{field.replace('_', ' ')} {{}}")
    return words.format("default" if value is None else value)


def sweep_document(specs: Iterable[RunSpec]) -> str:
    """A TOML document for ``bezoar sweep`` with exactly these runs."""
    ordered = sorted(set(specs), key=field_order)
    blocks: list[Block] = [{name: (value,) for name, value in spec} for spec in ordered]
    for field in MERGED:
        blocks = _merged(blocks, field)
    first, *others = blocks = [_changed_fields(block) for block in blocks]
    common = {f: v for f, v in first.items() if all(other.get(f) == v for other in others)}
    text = "".join(_line(*field) for field in common.items())
    if not others:
        return text or "# every field as it is by default\n"
    for block in blocks:
        own = [_line(*field) for field in block.items() if field[0] not in common]
        text += "\n[[group]]\n" + "".join(own)
    return text


def _merged(blocks: Iterable[Block], field: str) -> list[Block]:
    """Blocks that differ in one field alone become one block, with all their values of it."""
    alike: dict[Any, list[Any]] = {}
    for block in blocks:
        others = tuple((name, values) for name, values in block.items() if name != field)
        alike.setdefault(others, []).extend(block[field])
    return [{**dict(others), field: tuple(dict.fromkeys(v))} for others, v in alike.items()]


def _changed_fields(block: Block) -> Block:
    """The fields that are not at their defaults, in their usual order."""
    default = RunSpec()
    told = [name for name, value in default if block[name] != (value,)]
    if "model" in told and "start" not in told:
        told.append("start")  # whose default depends on the model
    return {name: block[name] for name in told}


def _line(field: str, values: Sequence[Any]) -> str:
    if len(values) == 1:
        return f"{field} = {_value(_swept_once(field, values[0]))}\n"
    items = [_value(value) for value in values]
    text = f"{field} = [{', '.join(items)}]\n"
    if len(text) > 88:
        text = f"{field} = [\n" + "".join(f"    {item},\n" for item in items) + "]\n"
    return text


def _swept_once(name: str, value: Any) -> Any:
    """A value that is a list is put into another list, because a list alone would be swept."""
    is_list = isinstance(value, list | tuple)
    return [value] if is_list and name not in LISTS else value


def _value(value: Any) -> str:
    if isinstance(value, Choice):
        changed = _changed_options(value).items()
        options = {key: _swept_once(key, option) for key, option in changed}
        return _value({"name": value.name, **options} if options else value.name)
    if isinstance(value, Mapping):
        given = (f"{_key(k)} = {_value(item)}" for k, item in value.items() if item is not None)
        return f"{{ {', '.join(given)} }}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # A text is written as in JSON, but TOML also wants this character escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _value(name)


def _changed_options(choice: Choice) -> dict[str, Any]:
    """The options that are not at their defaults; all options if the choice is not known here."""
    try:
        defaults = default_options(maker(choice.kind, choice.name))
    except BezoarError:
        defaults = {}
    return {o: v for o, v in choice.options.items() if o not in defaults or defaults[o] != v}
