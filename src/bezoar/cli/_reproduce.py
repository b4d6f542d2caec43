"""``bezoar reproduce``."""

from collections.abc import Sequence
from pathlib import Path

from bezoar._registry import choose
from bezoar.cli._screen import console, number, print_table, training_progress
from bezoar.experiments import Cell, figure_1, network_of, run_all
from bezoar.report import Panel, look, panels_figure
from bezoar.training import History

TITLES = {"two_castle": "Two-castle", "fan": "Fan"}

FIGURES = {"fig1": figure_1}


def reproduce(
    names: Sequence[str], out: Path, iterations: int | None, seed: int, workers: int | None
) -> None:
    """Run the experiments of the named figures and save their pictures."""
    makers = [choose("figure", name, FIGURES) for name in names]
    for name, make in zip(names, makers, strict=True):
        cells = make(seed=seed) if iterations is None else make(iterations, seed=seed)
        with training_progress(f"{name}: {len(cells)} runs together") as progress:
            histories = run_all([cell.spec for cell in cells], workers, progress)
        _show_figure_1(cells, histories, out / name)


def _show_figure_1(cells: Sequence[Cell], histories: Sequence[History], out: Path) -> None:
    results = list(zip(cells, histories, strict=True))
    networks = list(dict.fromkeys(cell.network for cell in cells))
    rules = list(dict.fromkeys(cell.rule for cell in cells))
    final = {(cell.network, cell.rule): float(history["accuracy"][-1]) for cell, history in results}
    panels = [
        Panel(
            TITLES[network],
            network_of(next(cell.spec for cell in cells if cell.network == network)),
            [(look(cell.rule), history) for cell, history in results if cell.network == network],
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
