"""Tables of finished runs: what they differ in, and what became of them. Needs no torch."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import nan
from typing import TYPE_CHECKING, Any

from bezoar._numbers import count, duration, number
from bezoar.experiments import CHOICES, FORMAL, RunSpec, StoredRun, field_text, spec_of
from bezoar.report._page import Page, Table

if TYPE_CHECKING:
    from bezoar.experiments import Failure

#: Values of a field that become columns of the table of results at the most, and its rows.
COLUMNS, ROWS = 6, 60

#: Digits of a key in a table.
SHORT = 8


def last_values(run: StoredRun) -> dict[str, float]:
    """The last measurements of a run."""
    return {name: float(values[-1]) for name, values in run.metrics.items() if len(values)}


def run_document(run: StoredRun) -> dict[str, Any]:
    """A run without its curves, for machines."""
    return {"key": run.key, "spec": run.spec, "diverged": run.diverged, "final": last_values(run)}


def runs_page(title: str, runs: Sequence[StoredRun]) -> Page:
    """A table of the fields in which runs differ, and in words those they have in common."""
    first = ("network", "partition", "attack", "poisoned", "aggregator", "seed")
    found = _fields([spec_of(run) for run in runs], first)
    shared = {field: texts[0] for field, texts in found.items() if len(set(texts)) == 1}
    columns = {
        "key": [run.key[:SHORT] for run in runs],
        **{field: texts for field, texts in found.items() if field not in shared},
        "accuracy": [number(last_values(run).get("accuracy", nan)) for run in runs],
        "age": [_age(run.provenance.get("ended")) for run in runs],
    }
    if any(run.diverged for run in runs):
        columns["diverged"] = ["yes" if run.diverged else "" for run in runs]
    common = ", ".join(f"{field} {text}" for field, text in shared.items())
    if not runs:
        return Page(name="runs", title=title)
    caption = f"{'All with' if len(runs) > 1 else 'With'} {common}."
    table = Table.of("", columns, zip(*columns.values(), strict=True))
    return Page(name="runs", title=title, caption=caption, tables=(table,))


def run_page(run: StoredRun) -> Page:
    """Everything about a run but its curves."""
    spec = spec_of(run)
    after = f"After {spec.iterations} iterations" + (", diverged" if run.diverged else "")
    fields = ((field, field_text(spec, field)) for field in RunSpec.model_fields)
    values = ((name, number(value)) for name, value in last_values(run).items())
    origin = ((name, str(value)) for name, value in flat(run.provenance).items())
    tables = (
        Table.of("", ("field", "value"), fields),
        Table.of(after, ("metric", "value"), values),
        Table.of("Where and when", ("what", "found"), origin),
    )
    return Page(name="run", title=run.key, tables=tables)


def results_table(runs: "Sequence[StoredRun | Failure]", title: str, metric: str) -> Table:
    """The last values of a metric by the fields in which runs differ; one makes the columns."""
    first = ("aggregator", "network", "partition", "attack", "poisoned")
    specs = [spec_of(run) if isinstance(run, StoredRun) else run.spec for run in runs]
    found = _fields(specs, first)
    varying = {field: texts for field, texts in found.items() if len(set(texts)) > 1}
    across = _columns(varying)
    down = [field for field in varying if field != across] or ["aggregator"]
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for place, run in enumerate(runs):
        row = tuple(found[field][place] for field in down)
        cells.setdefault(row, {})[found[across][place] if across else metric] = _cell(run, metric)
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


def _cell(run: "StoredRun | Failure", metric: str) -> str:
    if not isinstance(run, StoredRun):
        return "failed"
    value = number(last_values(run).get(metric, nan))
    return f"{value} diverged" if run.diverged else value


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
