"""``bezoar reproduce theorems`` and ``contamination``: the theory beside real runs."""

from collections.abc import Sequence
from pathlib import Path

from bezoar.cli._screen import console, number, print_table
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
from bezoar.report import look, save_table, topology_figure


def theorems(out: Path, iterations: int | None, seed: int, workers: int | None) -> None:
    """Theorems 1 and 2 on real runs: both sides, the slack, and where conditions fail."""
    total = iterations or ITERATIONS
    checked = theorem_study(iterations=total, workers=workers)
    columns = ["rule", "network", "ρ", "room", "error", "bound", "slack", "cons.", "slack "]
    saved = []
    for objective, title in OBJECTIVES.items():
        rows = [_row(entry) for entry in checked if entry.objective == objective]
        print_table(title, columns, rows)
        saved += [[objective, *row] for row in rows]
    applying = [entry.verdict for entry in checked if entry.verdict.applies]
    held = [verdict for verdict in applying if verdict.holds]
    console.print(
        f"{len(held)} of {len(applying)} runs to which a theorem applies stay below both bounds, "
        f"the tightest by {min((v.slack for v in applying), default=float('nan')):.3g} times."
    )
    for (network, condition), rules in _failures(checked).items():
        console.print(
            f"On {network} {condition} fails for {', '.join(rules)}: nothing is promised."
        )
    several = [total // 2, total, 2 * total, 4 * total]
    slopes = consensus_exponents(theorem_networks()[1], iterations=several, workers=workers)
    shown = ", ".join(f"{look(rule).label} {slope:.3f}" for rule, slope in slopes.items())
    console.print(f"Consensus error on two-castle falls like K to the power of: {shown}")
    headings = ["objective", *columns[:-2], "consensus error", "consensus slack"]
    for path in save_table(out / "theorems", headings, saved):
        console.print(f"Table: {path}")


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


def contamination(out: Path, iterations: int | None, seed: int, workers: int | None) -> None:
    """Learning errors along either contamination rate, as tables and a picture."""
    study = topology_study(iterations=iterations or 800, workers=workers)
    rules = list(dict.fromkeys(found.rule for found in study.by_delta_max))
    for title, name, errors in (
        ("Learning error, same δ", "by_delta_max", study.by_delta_max),
        ("Learning error, same δ_max", "by_delta", study.by_delta),
    ):
        columns = ["δ", "δ_max", *(look(rule).label for rule in rules)]
        places = list(dict.fromkeys((found.delta, found.delta_max) for found in errors))
        error = {(e.delta, e.delta_max, e.rule): e.error for e in errors}
        rows = [
            [number(d), number(m), *(number(error[d, m, rule]) for rule in rules)]
            for d, m in places
        ]
        print_table(title, columns, rows)
        save_table(out / name, columns, rows)
    console.print(f"Picture: {topology_figure(out / 'contamination.png', study)}")
    console.print(
        "What to see: the weighted mean's error moves with δ alone, like δ²; that of the best "
        "robust rule with δ_max alone, like (δ_max/(1−δ_max))²."
    )
