"""Tables of runs: the fields in which they differ, and their last measurements. Needs no torch."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import nan
from typing import Any

from bezoar._numbers import count, duration, number
from bezoar.experiments import CHOICES, FORMAL, Failure, RunSpec, StoredRun, field_text, spec_of
from bezoar.report._page import Curve, Page, Panel, Table, thinned
from bezoar.report._style import legend

#: The most columns and rows of the table of results.
COLUMNS, ROWS = 6, 60


def last_values(run: StoredRun) -> dict[str, float]:
    """The last measurements of a run."""
    return {name: float(values[-1]) for name, values in run.metrics.items() if len(values)}


def run_document(run: StoredRun) -> dict[str, Any]:
    """A run without its curves, for machines."""
    return {"key": run.key, "spec": run.spec, "diverged": run.diverged, "final": last_values(run)}


def data_note(dataset: object, note: str) -> str:
    """What a reader must know about the data, as a sentence; empty if there is nothing."""
    return f"Data: {dataset}, {note}." if note else ""


def data_notes(runs: Iterable[StoredRun]) -> list[str]:
    """The notes about the data of finished runs, each once."""
    notes = (data_note(spec_of(run).dataset, run.provenance.get("data_note", "")) for run in runs)
    return list(dict.fromkeys(filter(None, notes)))


def runs_page(title: str, runs: Sequence[StoredRun]) -> Page:
    """A table of the fields in which runs differ; the caption has the fields they share."""
    if not runs:
        return Page(name="runs", title=title)
    first = ("network", "partition", "attack", "poisoned", "aggregator", "seed")
    found = _fields([spec_of(run) for run in runs], first)
    shared = {field: texts[0] for field, texts in found.items() if len(set(texts)) == 1}
    columns = {
        "key": [run.key[:8] for run in runs],
        **{field: texts for field, texts in found.items() if field not in shared},
        "accuracy": [number(last_values(run).get("accuracy", nan)) for run in runs],
        "age": [_age(run.provenance.get("ended")) for run in runs],
    }
    if any(run.diverged for run in runs):
        columns["diverged"] = ["yes" if run.diverged else "" for run in runs]
    common = ", ".join(f"{field} {text}" for field, text in shared.items())
    caption = [f"{'All with' if len(runs) > 1 else 'With'} {common}.", *data_notes(runs)]
    table = Table.of("", columns, zip(*columns.values(), strict=True))
    return Page(name="runs", title=title, caption="\n".join(caption), tables=(table,))


def run_page(run: StoredRun) -> Page:
    """Everything about a run but its curves."""
    spec = spec_of(run)
    after = f"After {spec.iterations} iterations" + (", diverged" if run.diverged else "")
    fields = ((field, field_text(spec, field)) for field in RunSpec.model_fields)
    values = ((name, number(value)) for name, value in last_values(run).items())
    origin = flat(run.provenance)
    origin.pop("data_note", None)  # the caption has it
    tables = (
        Table.of("", ("field", "value"), fields),
        Table.of(after, ("metric", "value"), values),
        Table.of("Where and when", ("what", "found"), ((k, str(v)) for k, v in origin.items())),
    )
    return Page(name="run", title=run.key, caption="".join(data_notes([run])), tables=tables)


def results_table(runs: Sequence[StoredRun | Failure], title: str, metric: str) -> Table:
    """The last values of a metric by the fields in which runs differ; one makes the columns."""
    first = ("aggregator", "network", "partition", "attack", "poisoned")
    specs = [spec_of(run) if isinstance(run, StoredRun) else run.spec for run in runs]
    found = _fields(specs, first)
    varying = {field: texts for field, texts in found.items() if len(set(texts)) > 1}
    across = _columns(varying)
    down = [field for field in varying if field != across] or ["aggregator"]
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for place, run in enumerate(runs):
        text = "failed"
        if isinstance(run, StoredRun):
            text = number(last_values(run).get(metric, nan)) + " diverged" * run.diverged
        row = tuple(found[field][place] for field in down)
        cells.setdefault(row, {})[found[across][place] if across else metric] = text
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    heads = columns if not across or across in CHOICES else [f"{across} {c}" for c in columns]
    rows = [(*row, *(cells[row].get(c, "–") for c in columns)) for row in _in_order(cells)]
    if len(rows) > ROWS:
        title += f" (without the last {count(len(rows) - ROWS, 'row')})"
    return Table.of(title, (*down, *heads), rows[:ROWS])


def _fields(specs: Sequence[RunSpec], first: Sequence[str]) -> dict[str, list[str]]:
    """For each field of specs its texts, these fields before the others."""
    fields = [*first, *(f for f in RunSpec.model_fields if f not in (*first, *FORMAL))]
    return {field: [field_text(spec, field) for spec in specs] for field in fields}


def _columns(varying: Mapping[str, Sequence[str]]) -> str | None:
    """The field whose values make the smallest table as columns."""

    def size(field: str) -> int:
        rows = zip(*(texts for other, texts in varying.items() if other != field), strict=True)
        return len(set(rows)) * len(set(varying[field]))

    # Rows are rules; of the other fields, the later ones are the more usual columns.
    able = [field for field in list(varying)[:0:-1] if len(set(varying[field])) <= COLUMNS]
    return min(able, key=size, default=None)


def _in_order(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows sorted column by column, texts in the order of their first occurrence."""
    found = list(rows)
    places = [list(dict.fromkeys(texts)) for texts in zip(*found, strict=True)]
    return sorted(found, key=lambda row: [p.index(t) for p, t in zip(places, row, strict=True)])


def flat(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested document as one level with dotted names."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        inner = isinstance(value, dict)
        found |= flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return found


def _age(ended: Any) -> str:
    """How long ago a moment was; a dash where it is not known."""
    try:
        return duration((datetime.now(UTC) - datetime.fromisoformat(ended)).total_seconds())
    except (TypeError, ValueError):
        return "–"


def ends_table(title: str, panels: Sequence[Panel], metrics: Sequence[str]) -> Table:
    """The last values of curves: a row for each rule, or for each panel if those are more."""
    shown = legend(panels)
    ends = [{curve.name: _end(curve, metrics) for curve in panel.curves} for panel in panels]
    rows = [(look.label, *(end.get(name, "–") for end in ends)) for name, look in shown.items()]
    columns = ("rule", *(panel.title for panel in panels))
    if len(panels) > len(shown):
        columns, *rows = zip(columns, *rows, strict=True)
        columns = ("", *columns[1:])
    return Table.of(title, columns, rows)


def _end(curve: Curve, metrics: Sequence[str]) -> str:
    """The last mean over the seeds; for a single metric, also the smallest and largest value."""
    if curve.diverged:
        return "diverged"
    if not set(metrics) <= set(curve.metrics):
        return "–"
    text = " / ".join(number(float(curve.mean(metric)[-1])) for metric in metrics)
    if len(metrics) > 1 or len(curve.runs) == 1:
        return text
    low, high = (number(float(limit[-1])) for limit in curve.limits(metrics[0]))
    return f"{text} ({low}…{high})"


def panel_page(title: str, panel: Panel, caption: str) -> Page:
    """The last measurements of every curve; of a single curve, some earlier ones too."""
    from bezoar.training import METRICS  # imports torch

    first = panel.curves[0]
    shown = {m.name: m.column for m in METRICS.values() if m.name in first.metrics and m.column}
    if len(panel.curves) == 1:
        head, heading, iterations = "iteration", first.name, first.iterations
        places = thinned(len(iterations), 6).tolist()
        rows = [(str(iterations[place]), first, place) for place in places]
    else:
        head, heading = "rule", f"After {first.iterations[-1]} iterations"
        rows = [(curve.name, curve, -1) for curve in panel.curves]
    cells = (
        (name, *(number(float(curve.mean(metric)[place])) for metric in shown))
        for name, curve, place in rows
    )
    table = Table.of(heading, (head, *shown.values()), cells)
    for curve in panel.curves:
        if curve.diverged:
            caption += f"\n{curve.name} diverged: some models are no longer finite."
    return Page(name="run", title=title, caption=caption, tables=(table,))
