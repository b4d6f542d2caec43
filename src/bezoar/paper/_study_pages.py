"""The theory beside real runs: Theorems 1 and 2, and the contamination rates, as pages."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bezoar._numbers import joined, number
from bezoar.experiments import Progress
from bezoar.paper._contamination_study import ITERATIONS as CONTAMINATION_ITERATIONS
from bezoar.paper._contamination_study import LearningError, contamination_study
from bezoar.paper._figures import contamination_figure
from bezoar.paper._theorem_study import (
    ITERATIONS,
    OBJECTIVES,
    THEOREM_RULES,
    consensus_exponents,
    theorem_networks,
    theorem_study,
)
from bezoar.paper._theorems import ROUNDING, TheoremCheck
from bezoar.paper._theory_pages import write_page
from bezoar.report import Page, Table, look


def write_theorems(
    folder: Path, command: str, iterations: int | None, workers: int | None, progress: Progress
) -> Page:
    """Theorems 1 and 2 on real runs: both sides, the slack, and where conditions fail."""
    total = iterations or ITERATIONS
    checks = theorem_study(iterations=total, workers=workers, progress=progress)
    several = [max(1, total // 2), total, 2 * total, 4 * total]
    two_castle = theorem_networks()[1]
    slopes = consensus_exponents(two_castle, THEOREM_RULES, several, workers, progress)
    columns = ("rule", "network", "ρ", "room", "error", "bound", "slack", "cons.", "slack ")
    tables = tuple(
        Table.of(OBJECTIVES[objective], columns, map(_row, found))
        for objective, found in checks.items()
    )
    data = Table.of(
        "",
        ("objective", *columns[:-2], "consensus error", "consensus slack"),
        ((objective, *_row(check)) for objective, found in checks.items() for check in found),
    )
    return Page(
        name=folder.name,
        title="Theorems 1 and 2 beside real runs",
        caption=_theorems_caption(checks, slopes),
        command=command,
        data=data.save(folder / folder.name),
        tables=tables,
    ).save(folder)


def _theorems_caption(
    checks: Mapping[str, Sequence[TheoremCheck]], slopes: dict[str, float]
) -> str:
    # By network and condition, the rules for which it fails, each with its objectives.
    failing: dict[tuple[str, str], dict[str, list[str]]] = {}
    for objective, found in checks.items():
        for check in found:
            for condition in (each for each in check.promise.conditions if not each.holds):
                rules = failing.setdefault((check.run.network.name, condition.name), {})
                rules.setdefault(look(check.run.aggregator.name).label, []).append(objective)

    def told(rules: Mapping[str, Sequence[str]]) -> str:
        whole = len(checks)
        return ", ".join(
            rule if len(where) == whole else f"{rule} ({joined(OBJECTIVES[o] for o in where)})"
            for rule, where in rules.items()
        )

    applying = [check for found in checks.values() for check in found if check.applies]
    tightest = min((check.slack for check in applying), default=float("nan"))
    shown = ", ".join(f"{look(rule).label} {slope:.3f}" for rule, slope in slopes.items())
    return " ".join(
        [
            f"{sum(bool(check.holds) for check in applying)} of {len(applying)} runs to which a "
            f"theorem applies stay below both bounds, the tightest by {tightest:.3g} times.",
            *(
                f"On {network} {condition} fails for {told(rules)}: nothing is promised."
                for (network, condition), rules in failing.items()
            ),
            f"Consensus error on two-castle falls like K to the power of: {shown}.",
        ]
    )


def _row(check: TheoremCheck) -> tuple[str, ...]:
    limits = [c.limit for c in check.promise.conditions if c.name.startswith("ρ")]
    bound = slack = consensus_slack = "–"
    if check.applies:
        bound, slack = number(check.bound), f"{check.slack:.3g}"
        if check.consensus > ROUNDING:  # in a complete network there is nothing but rounding
            consensus_slack = f"{check.consensus_slack:.3g}"
    return (
        look(check.run.aggregator.name).label,
        check.run.network.name,
        number(check.rho),
        number(max(0.0, limits[0])) if limits else "–",
        number(check.error),
        bound,
        slack,
        number(check.consensus),
        consensus_slack,
    )


def write_contamination(
    folder: Path, command: str, iterations: int | None, workers: int | None, progress: Progress
) -> Page:
    """Learning errors along either contamination rate, as tables and a picture."""
    study = contamination_study(
        iterations=iterations or CONTAMINATION_ITERATIONS, workers=workers, progress=progress
    )
    tables = {
        "by_delta_max": _errors("Learning error, same δ", study.by_delta_max),
        "by_delta": _errors("Learning error, same δ_max", study.by_delta),
    }
    [picture] = contamination_figure(folder / f"{folder.name}.png", study)
    alt = (
        "Two plots of learning errors. Left, δ fixed: the robust rules' errors rise with δ_max "
        "along the theory's curve, the weighted mean's stays level. Right, δ_max fixed: the "
        "weighted mean's error rises with δ, the robust rules' stay level. Numbers are in the "
        "tables."
    )
    caption = (
        "The weighted mean's error moves with δ alone, like δ²; that of the best robust rule with "
        "δ_max alone, like (δ_max/(1−δ_max))². This is the worst case, as in Table II: each error "
        "is that in the worse of two instances of Theorem 3. For one fixed objective the ordering "
        "need not show."
    )
    title = "Learning errors along the contamination rates"
    return write_page(folder, command, title, caption, tables, [picture], alt)


def _errors(title: str, errors: Iterable[LearningError]) -> Table:
    """A row for each pair of rates, a column for each rule."""
    found: dict[tuple[float, float], dict[str, str]] = {}
    for error in errors:
        row = found.setdefault((error.delta, error.delta_max), {})
        row[look(error.rule).label] = number(error.error)
    columns = ("δ", "δ_max", *next(iter(found.values())))
    rows = ((*map(number, rates), *row.values()) for rates, row in found.items())
    return Table.of(title, columns, rows)
