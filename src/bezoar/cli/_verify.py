"""``bezoar reproduce theorems`` and ``contamination``: the theory beside real runs."""

from collections.abc import Sequence
from pathlib import Path

from bezoar._numbers import number
from bezoar.cli._screen import training_progress
from bezoar.experiments import (
    ITERATIONS,
    OBJECTIVES,
    ROUNDING,
    Checked,
    consensus_exponents,
    theorem_networks,
    theorem_study,
    topology_study,
)
from bezoar.report import Image, Summary, Table, look, save_table, topology_figure


def theorems(folder: Path, command: str, iterations: int | None, workers: int | None) -> Summary:
    """Theorems 1 and 2 on real runs: both sides, the slack, and where conditions fail."""
    total = iterations or ITERATIONS
    with training_progress("Theorems 1 and 2") as progress:
        checked = theorem_study(iterations=total, workers=workers, progress=progress)
    several = [total // 2, total, 2 * total, 4 * total]
    two_castle = theorem_networks()[1]
    with training_progress("Consensus errors") as progress:
        slopes = consensus_exponents(
            two_castle, iterations=several, workers=workers, progress=progress
        )
    columns = ("rule", "network", "ρ", "room", "error", "bound", "slack", "cons.", "slack ")
    rows = {
        objective: [_row(entry) for entry in checked if entry.objective == objective]
        for objective in OBJECTIVES
    }
    applying = [entry.verdict for entry in checked if entry.verdict.applies]
    held = [verdict for verdict in applying if verdict.holds]
    tightest = min((verdict.slack for verdict in applying), default=float("nan"))
    failing = (
        f"On {network} {condition} fails for {', '.join(rules)}: nothing is promised."
        for (network, condition), rules in _failures(checked).items()
    )
    shown = ", ".join(f"{look(rule).label} {slope:.3f}" for rule, slope in slopes.items())
    data = save_table(
        folder / folder.name,
        ("objective", *columns[:-2], "consensus error", "consensus slack"),
        [[objective, *row] for objective, several in rows.items() for row in several],
    )
    summary = Summary(
        name=folder.name,
        title="Theorems 1 and 2 beside real runs",
        caption=" ".join(
            [
                f"{len(held)} of {len(applying)} runs to which a theorem applies stay below both "
                f"bounds, the tightest by {tightest:.3g} times.",
                *failing,
                f"Consensus error on two-castle falls like K to the power of: {shown}.",
            ]
        ),
        command=command,
        data=tuple(path.name for path in data),
        tables=tuple(
            Table(title=OBJECTIVES[objective], columns=columns, rows=tuple(map(tuple, found)))
            for objective, found in rows.items()
        ),
    )
    summary.save(folder)
    return summary


def _failures(checked: Sequence[Checked]) -> dict[tuple[str, str], list[str]]:
    """For each network and condition the rules that do not meet it."""
    failures: dict[tuple[str, str], list[str]] = {}
    for verdict in (entry.verdict for entry in checked):
        for condition in verdict.promise.conditions:
            rules = failures.setdefault((verdict.run.network.name, condition.name), [])
            rule = look(verdict.run.aggregator.name).label
            if not condition.holds and rule not in rules:
                rules.append(rule)
    return {place: rules for place, rules in failures.items() if rules}


def _row(entry: Checked) -> list[str]:
    verdict = entry.verdict
    limits = [c.limit for c in verdict.promise.conditions if c.name.startswith("ρ")]
    if verdict.applies:
        measured = [
            number(verdict.error),
            number(verdict.bound),
            f"{verdict.slack:.3g}",
            number(verdict.consensus),
            # In a complete network there is nothing but rounding.
            f"{verdict.consensus_slack:.3g}" if verdict.consensus > ROUNDING else "–",
        ]
    else:
        measured = [number(verdict.error), "–", "–", number(verdict.consensus), "–"]
    return [
        look(verdict.run.aggregator.name).label,
        verdict.run.network.name,
        number(verdict.rho),
        number(max(0.0, limits[0])) if limits else "–",
        *measured,
    ]


def contamination(
    folder: Path, command: str, iterations: int | None, workers: int | None
) -> Summary:
    """Learning errors along either contamination rate, as tables and a picture."""
    with training_progress("Contamination rates") as progress:
        study = topology_study(iterations=iterations or 800, workers=workers, progress=progress)
    rules = list(dict.fromkeys(found.rule for found in study.by_delta_max))
    columns = ("δ", "δ_max", *(look(rule).label for rule in rules))
    tables: list[Table] = []
    data: list[Path] = []
    for title, name, errors in (
        ("Learning error, same δ", "by_delta_max", study.by_delta_max),
        ("Learning error, same δ_max", "by_delta", study.by_delta),
    ):
        places = list(dict.fromkeys((found.delta, found.delta_max) for found in errors))
        error = {(e.delta, e.delta_max, e.rule): e.error for e in errors}
        rows = tuple(
            (number(d), number(m), *(number(error[d, m, rule]) for rule in rules))
            for d, m in places
        )
        tables.append(Table(title=title, columns=columns, rows=rows))
        data += save_table(folder / name, columns, rows)
    picture = topology_figure(folder / f"{folder.name}.png", study)
    alt = (
        "Two plots of learning errors. Left, δ fixed: the robust rules' errors rise with δ_max "
        "along the theory's curve, the weighted mean's stays level. Right, δ_max fixed: the "
        "weighted mean's error rises with δ, the robust rules' stay level. Numbers are in the "
        "tables."
    )
    summary = Summary(
        name=folder.name,
        title="Learning errors along the contamination rates",
        caption="The weighted mean's error moves with δ alone, like δ²; that of the best robust "
        "rule with δ_max alone, like (δ_max/(1−δ_max))². This is the worst case, as in Table II: "
        "each error is that in the worse of two instances of Theorem 3. For one fixed objective "
        "the ordering need not show.",
        command=command,
        images=(Image(file=picture.name, alt=alt),),
        data=tuple(path.name for path in data),
        tables=tuple(tables),
    )
    summary.save(folder)
    return summary
