"""What was run, when and where: a report's first paragraph and its last table."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from bezoar._numbers import count, duration
from bezoar.experiments import StoredRun, spec_of
from bezoar.report._run_tables import flat
from bezoar.report._style import BASELINE, Look

#: What is trained, in words.
MODELS = {"softmax": "softmax regression"}

#: What is told of the runs' provenance, and where that is in it.
FACTS = {
    "bezoar": "own.bezoar",
    "torch": "own.torch",
    "numpy": "own.numpy",
    "Python": "versions.python",
    "system": "machine.system",
    "processor": "machine.processor",
    "cores": "machine.cores",
    "commit of the checkout": "checkout.commit",
}


def opening(pages: int, runs: Sequence[StoredRun], looks: Collection[Look]) -> str:
    """What was run and when, in a few sentences."""
    if not runs:
        return f"{count(pages, 'result')} that took no training."
    specs = [spec_of(run) for run in runs]
    models = (MODELS.get(str(spec.model), str(spec.model)) for spec in specs)
    times, seeds = _times(runs), sorted({spec.seed for spec in specs})
    baseline = any(look.name.startswith(BASELINE) for look in looks)
    iterations = _and(f"{number:,}" for number in sorted({spec.iterations for spec in specs}))
    sentences = [
        f"{count(len(runs), 'run')} of {_distinct(models)} on "
        f"{_distinct(spec.dataset for spec in specs)}, {iterations} iterations, "
        f"seed{'s' if len(seeds) > 1 else ''} {_distinct(seeds)}: "
        f"{_and(look.label for look in looks)}.",
        "The baseline is the weighted mean with nobody poisoned." if baseline else "",
        f"Networks: {_distinct(str(spec.network) for spec in specs)}.",
        f"Partition: {_distinct(str(spec.partition) for spec in specs)}.",
        f"Trained {_span(times)}, {duration(_seconds(times))} in all." if times else "",
    ]
    return " ".join(filter(None, sentences))


def provenance_rows(runs: Sequence[StoredRun]) -> list[tuple[str, str]]:
    """Versions and machines of the runs; where runs differ, each value with its number of runs."""
    facts = [flat(run.provenance | {"own": run.versions}) for run in runs]
    for fact in facts:
        if fact.get("checkout.changed") and fact.get("checkout.commit"):
            fact["checkout.commit"] = f"{fact['checkout.commit']} with changes"
    rows = [(name, _tallied([fact.get(key) for fact in facts])) for name, key in FACTS.items()]
    if times := _times(runs):
        rows.append(("trained", _span(times)))
        rows.append(("training time", duration(_seconds(times))))
    return [(name, text) for name, text in (*rows, ("runs", str(len(runs)))) if text]


def _and(items: Any) -> str:
    *first, last = [str(item) for item in items]
    return f"{', '.join(first)} and {last}" if first else last


def _distinct(items: Any) -> str:
    found = list(dict.fromkeys(items))
    return _and(found) if len(found) <= 6 else f"{_and(found[:5])} and {len(found) - 5} more"


def _tallied(values: Sequence[Any]) -> str:
    found = [str(value) for value in values if value not in (None, "")]
    distinct = list(dict.fromkeys(found))
    if len(distinct) <= 1:
        return "".join(distinct)
    return "; ".join(f"{value} ({count(found.count(value), 'run')})" for value in distinct)


def _times(runs: Sequence[StoredRun]) -> list[tuple[datetime, datetime]]:
    """When training began and ended, once for runs that were trained together, in order."""
    found = set()
    for run in runs:
        try:
            texts = run.provenance["started"], run.provenance["ended"]
            start, end = (datetime.fromisoformat(text).astimezone(UTC) for text in texts)
            found.add((start, end))
        except (KeyError, TypeError, ValueError):
            continue  # somebody else's provenance
    return sorted(found)


def _span(times: Sequence[tuple[datetime, datetime]]) -> str:
    first, last = times[0][0], max(end for _, end in times)
    if f"{first:%F %H:%M}" == f"{last:%F %H:%M}":
        return f"{first:%F %H:%M} UTC"
    until = f"{last:%H:%M}" if first.date() == last.date() else f"{last:%F %H:%M}"
    return f"{first:%F %H:%M} to {until} UTC"


def _seconds(times: Sequence[tuple[datetime, datetime]]) -> float:
    return sum((end - start).total_seconds() for start, end in times)
