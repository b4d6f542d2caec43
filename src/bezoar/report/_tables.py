"""Tables of runs: the fields in which they differ, and their last measurements. Needs no torch."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import nan
from typing import TYPE_CHECKING, Any

from bezoar._files import digest
from bezoar._numbers import count, duration, joined, number, with_spread
from bezoar.experiments import FORMAL, Choice, Failure, RunSpec, StoredRun, field_text, spec_of
from bezoar.report._page import Curve, Page, Panel, Table, thinned
from bezoar.report._style import legend

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from bezoar.networks import Network
    from bezoar.training import History

#: The most rows of the table of results.
ROWS = 60

#: The most neighbours of an agent whose weights are told.
NEIGHBOURS = 6

#: The metrics that results are told by: what the agents themselves hold, on average and at worst,
#: before the average model, which nobody holds.
SHOWN = ("accuracy_mean", "accuracy_worst", "accuracy")


def last_values(run: StoredRun) -> dict[str, float]:
    """The last measurements of a run."""
    return {name: float(values[-1]) for name, values in run.metrics.items() if len(values)}


def run_document(run: StoredRun) -> dict[str, Any]:
    """A run without its curves, for machines."""
    return {"key": run.key, "spec": run.spec, "diverged": run.diverged, "final": last_values(run)}


def notes_about(dataset: object, data: str, network: object, note: str) -> list[str]:
    """What a reader must know about the data and about a network, if anything: a sentence each."""
    told = (("Data", dataset, data), ("Network", network, note))
    return [f"{what}: {name}, {about}." for what, name, about in told if about]


def data_notes(runs: Iterable[StoredRun]) -> list[str]:
    """The notes about the data and the networks of finished runs, each once."""
    notes = []
    for run in runs:
        spec, told = spec_of(run), run.provenance
        data, network = told.get("data_note", ""), told.get("network_note", "")
        notes += notes_about(spec.dataset, data, spec.network, network)
        notes.append(told.get("agents_note", ""))
    return list(dict.fromkeys(filter(None, notes)))


def runs_page(title: str, runs: Sequence[StoredRun]) -> Page:
    """A table of the fields in which runs differ; the caption has the fields they share."""
    if not runs:
        return Page(name="runs", title=title)
    first = ("network", "partition", "attack", "poisoned", "aggregator", "seed")
    found = _fields([spec_of(run) for run in runs], first)
    shared = {field: texts[0] for field, texts in found.items() if len(set(texts)) == 1}
    ends = [defaultdict(lambda: nan, last_values(run)) for run in runs]
    columns = {
        "key": [run.key[:8] for run in runs],
        **{field: texts for field, texts in found.items() if field not in shared},
        **{metric: [number(last[metric]) for last in ends] for metric in shown_first(runs)},
        "age": [_age(run) for run in runs],
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
    after = f"After {count(spec.iterations, 'iteration')}" + (", diverged" if run.diverged else "")
    fields = ((field, field_text(spec, field)) for field in RunSpec.model_fields)
    values = ((name, number(value)) for name, value in last_values(run).items())
    origin = flat(run.provenance)
    for note in ("data_note", "network_note", "agents_note"):
        origin.pop(note, None)  # the caption has it
    known = run.agents or run.listening
    tables = (
        Table.of("", ("field", "value"), fields),
        Table.of(after, ("metric", "value"), values),
        *([agents_table(run, run.network)] if known and run.network else []),
        Table.of("Where and when", ("what", "found"), ((k, str(v)) for k, v in origin.items())),
    )
    return Page(name="run", title=run.key, caption="\n".join(data_notes([run])), tables=tables)


def agents_table(
    run: "StoredRun | History",
    network: "Network",
    which: Iterable[int] | None = None,
    title: str = "Every agent at the end",
) -> Table:
    """What was asked for of single agents: how good they are, and whom they listened to.

    The run must have been asked for one of both. Only the agents ``which`` are shown, by default
    all.
    """
    agents = list(range(network.agents) if which is None else which)
    left_out, agents = len(agents) - ROWS, agents[:ROWS]
    columns: dict[str, list[str]] = {}
    for name, values in run.agents.items():
        columns[name] = [number(float(values[-1, agent])) for agent in agents]
    if run.listening:
        last = max(run.listening)
        weights = run.listening[last]
        poisoned = weights @ network.poisoned_mask.astype(float)
        title += f", and whom they listened to in iteration {last}"
        columns["own"] = [number(float(weights[agent, agent])) for agent in agents]
        columns["poison"] = [number(float(poisoned[agent])) for agent in agents]
        columns["neighbours"] = [_heard(weights, network, agent) for agent in agents]
    names = [f"{'■ ' * (agent in network.poisoned)}{network.names[agent]}" for agent in agents]
    if left_out > 0:
        title += f" (without the last {count(left_out, 'agent')})"
    return Table.of(title, ("agent", *columns), zip(names, *columns.values(), strict=True))


def _heard(weights: "csr_array", network: "Network", agent: int) -> str:
    """The weights that an agent gave to its neighbours, the largest first, without zeros."""
    row = weights[[agent]].tocoo()
    given = [(-weight, other) for other, weight in zip(row.coords[1], row.data, strict=True)]
    kept = [(-w, other) for w, other in sorted(given) if w and other != agent]
    told = [f"{network.names[other]}: {weight:.3f}" for weight, other in kept]
    return ", ".join([*told[:NEIGHBOURS], *(["…"] if len(told) > NEIGHBOURS else [])])


def shown_first(runs: "Iterable[StoredRun | History]") -> list[str]:
    """Those metrics that results are told by which some run has; else the first that one has."""
    there = list(dict.fromkeys(name for run in runs for name in run.metrics))
    return [metric for metric in SHOWN if metric in there] or there[:1]


def results_table(runs: Sequence[StoredRun | Failure]) -> Table:
    """The last values of the metrics that are told first, by the fields in which runs differ.

    Runs that differ only in their seeds share a row, which has their mean and standard deviation.
    """
    first = ("aggregator", "network", "partition", "attack", "poisoned")
    specs = [spec_of(run) if isinstance(run, StoredRun) else run.spec for run in runs]
    found = _fields(specs, first)
    down = [field for field, texts in found.items() if len(set(texts)) > 1 and field != "seed"]
    down = down or ["aggregator"]
    alike: dict[tuple[str, ...], list[StoredRun | Failure]] = {}
    for place, run in enumerate(runs):
        alike.setdefault(tuple(found[field][place] for field in down), []).append(run)
    metrics = shown_first(run for run in runs if isinstance(run, StoredRun))
    rows = [(*row, *_results(alike[row], metrics)) for row in _in_order(alike)]
    *less, most = sorted({spec.iterations for spec in specs})
    title = f"After {joined([*(f'{few:,}' for few in less), count(most, 'iteration')])}"
    if (seeds := len(set(found["seed"]))) > 1:
        title += f", mean and standard deviation over {seeds} seeds"
    if len(rows) > ROWS:
        title += f" (without the last {count(len(rows) - ROWS, 'row')})"
    return Table.of(title, (*down, *metrics), rows[:ROWS])


def _results(runs: Sequence[StoredRun | Failure], metrics: Sequence[str]) -> list[str]:
    """A cell for each metric: its last values over the seeds, and what went wrong."""
    finished = [run for run in runs if isinstance(run, StoredRun)]
    if not finished:
        return ["failed" for _ in metrics]
    wrong = {"diverged": sum(run.diverged for run in finished)}
    wrong["failed"] = len(runs) - len(finished)
    told = "".join(f" {what}" for what, number in wrong.items() if number)
    ends = [last_values(run) for run in finished]
    return [with_spread([end.get(metric, nan) for end in ends]) + told for metric in metrics]


def _fields(specs: Sequence[RunSpec], first: Sequence[str]) -> dict[str, list[str]]:
    """For each field of specs its texts, these fields before the others."""
    found = {}
    for field in (*first, *(f for f in RunSpec.model_fields if f not in (*first, *FORMAL))):
        texts = told_apart({getattr(spec, field): field_text(spec, field) for spec in specs})
        found[field] = [texts[getattr(spec, field)] for spec in specs]
    return found


def told_apart(texts: Mapping[Any, str]) -> dict[Any, str]:
    """The text of each value; values with the same text have the beginning of a checksum, too.

    Two long lists of links, for example, are both written as ``[90 items]``.
    """
    several = Counter(texts.values())
    return {
        value: f"{text} #{_checksum(value)}" if several[text] > 1 else text
        for value, text in texts.items()
    }


def _checksum(value: Any) -> str:
    document = value.document() if isinstance(value, Choice) else value
    return digest(json.dumps(document, sort_keys=True).encode())[:6]


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


def _age(run: StoredRun) -> str:
    """How long ago it was trained; a dash where that is not known."""
    if run.trained is None:
        return "–"
    return duration((datetime.now(UTC) - run.trained[1]).total_seconds())


def training_time(runs: Sequence[StoredRun]) -> tuple[str, str]:
    """When the runs were trained and how long that took; empty where nothing says it."""
    found = {run.trained for run in runs if run.trained}  # those trained together count once
    if not found:
        return "", ""
    first, last = min(start for start, _ in found), max(end for _, end in found)
    seconds = sum((end - start).total_seconds() for start, end in found)
    when, until = f"{first:%F %H:%M}", f"{last:%F %H:%M}"
    if until != when:
        when += f" to {until.removeprefix(f'{first:%F} ')}"
    return f"{when} UTC", duration(seconds)


def ends_table(title: str, panels: Sequence[Panel], metrics: Sequence[str]) -> Table:
    """The last values of curves: a row for each rule, or for each panel if those are more."""
    shown = legend(panels)
    ends = [{curve.name: end_text(curve, metrics) for curve in panel.curves} for panel in panels]
    rows = [(look.label, *(end.get(name, "–") for end in ends)) for name, look in shown.items()]
    table = Table.of(title, ("rule", *(panel.title for panel in panels)), rows)
    return table.turned() if len(panels) > len(shown) else table


def end_text(curve: Curve, metrics: Sequence[str]) -> str:
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
        head, heading = "rule", f"After {count(first.iterations[-1], 'iteration')}"
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
