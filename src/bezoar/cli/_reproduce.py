"""``bezoar reproduce``."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bezoar import networks, theory
from bezoar._registry import choose
from bezoar.cli._screen import console, number, print_table, training_progress
from bezoar.cli._verify import contamination, theorems
from bezoar.experiments import Cell, figure_1, network_of, run_all
from bezoar.report import Panel, look, lower_bound_figure, panels_figure, save_table
from bezoar.training import History

TITLES = {"two_castle": "Two-castle", "line": "Line", "fan": "Fan"}

#: Reproduces something, given where results go, iterations, seed and workers.
Maker = Callable[[Path, int | None, int, int | None], None]


def reproduce(
    names: Sequence[str], out: Path, iterations: int | None, seed: int, workers: int | None
) -> None:
    """Reproduce what is named and save it under ``out``, each in a folder of its own."""
    makers = [choose("figure", name, FIGURES) for name in names]
    for name, make in zip(names, makers, strict=True):
        make(out / name, iterations, seed, workers)


def _figure_1(out: Path, iterations: int | None, seed: int, workers: int | None) -> None:
    cells = figure_1(seed=seed) if iterations is None else figure_1(iterations, seed=seed)
    with training_progress(f"{out.name}: {len(cells)} runs together") as progress:
        histories = run_all([cell.spec for cell in cells], workers, progress)
    _show_figure_1(cells, histories, out)


def _show_figure_1(cells: Sequence[Cell], histories: Sequence[History], out: Path) -> None:
    results = list(zip(cells, histories, strict=True))
    networks = list(dict.fromkeys(cell.place.network for cell in cells))
    rules = list(dict.fromkeys(cell.place.rule for cell in cells))
    final = {
        (cell.place.network, cell.place.rule): float(history["accuracy"][-1])
        for cell, history in results
    }
    panels = [
        Panel(
            TITLES[network],
            network_of(next(cell.spec for cell in cells if cell.place.network == network)),
            [
                (look(cell.place.rule), history)
                for cell, history in results
                if cell.place.network == network
            ],
        )
        for network in networks
    ]
    iterations = cells[0].spec.iterations
    print_table(
        f"Test accuracy of the regular agents' average model after {iterations} iterations",
        ["rule", *(TITLES[network] for network in networks)],
        [
            [look(rule).label, *(number(final[network, rule]) for network in networks)]
            for rule in rules
        ],
    )
    pictures = [
        panels_figure(
            out / f"{panel.network.name}.png",
            [panel],
            ("accuracy", "consensus_error"),
            "MNIST by class, one agent of ten with flipped labels",
        )
        for panel in panels
    ]
    for picture in pictures:
        console.print(f"Picture: {picture}")
    console.print(_what_to_see(final, rules))


def _what_to_see(final: dict[tuple[str, str], float], rules: Sequence[str]) -> str:
    robust = [rule for rule in rules if rule not in ("weighted_mean", "baseline")]
    behind = [rule for rule in robust if final["fan", rule] < final["fan", "weighted_mean"]]
    best = max(robust, key=lambda rule: final["fan", rule])
    names = ", ".join(look(rule).label for rule in behind) or "none of them"
    return (
        f"What to see: on the fan network the plain weighted mean ends at "
        f"{final['fan', 'weighted_mean']:.3f}; of the {len(robust)} robust rules {len(behind)} "
        f"({names}) fall behind it, and the best of them, {look(best).label}, ends at "
        f"{final['fan', best]:.3f}."
    )


def _table_1(out: Path, iterations: int | None, seed: int, workers: int | None) -> None:
    """Table I, with the values on the paper's three networks."""
    made = [networks.create(name) for name in TITLES]
    rates = [theory.contamination(network) for network in made]
    rows = []
    for columns in zip(*(theory.contraction_orders(r.delta_max) for r in rates), strict=True):
        first = columns[0]
        stochastic = "doubly stochastic" if first.matrix == "mixing" else "row-stochastic"
        values = [number(entry.value) for entry in columns]
        rows.append([look(first.aggregator).label, first.order, stochastic, *values])
    _table(
        out / "table1",
        "Table I: orders of the contraction constant ρ, δ = δ_max; they carry no constants",
        ["aggregator", "ρ", "M", *TITLES.values()],
        rows,
    )
    shown = ", ".join(
        f"{title} {number(r.delta_max)}" for title, r in zip(TITLES.values(), rates, strict=True)
    )
    console.print(f"δ_max: {shown}. inf: the order says nothing at this rate.")


def _table_2(out: Path, iterations: int | None, seed: int, workers: int | None) -> None:
    """Table II, with the values on the paper's three networks."""
    rates = [theory.contamination(networks.create(name)) for name in TITLES]
    rows = [
        [columns[0].aggregator, columns[0].order, *(number(entry.value) for entry in columns)]
        for columns in zip(*(theory.learning_error_orders(r) for r in rates), strict=True)
    ]
    _table(
        out / "table2",
        "Table II: orders of the learning error where A = Θ(ξ), in units of ξ²",
        ["aggregator", "learning error", *TITLES.values()],
        rows,
    )
    console.print("RAgg is the best majority-dominant rule. Only ratios of these mean anything.")


def _table(stem: Path, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print_table(title, columns, rows)
    for saved in save_table(stem, columns, rows):
        console.print(f"Table: {saved}")


def _figure_9(out: Path, iterations: int | None, seed: int, workers: int | None) -> None:
    """Figure 9: the two instances of Theorem 3 with four regular and four poisoned agents."""
    instances = theory.lower_bound_instances(4, 4)
    console.print(f"Picture: {lower_bound_figure(out / 'lower_bound.png', instances)}")
    switched = " and ".join(str(agent) for agent in instances.switched)
    console.print(
        f"What to see: in both instances every regular agent hears {len(instances.network.regular)}"
        f" agents with label 1 and 2 with label 2, so a majority-dominant rule cannot tell them "
        f"apart, though the regular agents {switched} have changed sides; in one of them its mean "
        f"squared gradient is at least δ_max²c²/8 = {number(instances.bound)} c²."
    )


FIGURES: dict[str, Maker] = {
    "fig1": _figure_1,
    "fig9": _figure_9,
    "table1": _table_1,
    "table2": _table_2,
    "theorems": theorems,
    "contamination": contamination,
}
