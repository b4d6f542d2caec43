"""The paper's settings, as its section on numerical experiments states them."""

import numpy as np
import pytest

from bezoar import BezoarError, training
from bezoar.experiments import (
    MNIST,
    NETWORKS,
    SETTINGS,
    Store,
    distinct_specs,
    first_seeds,
    network_of,
    partition_of,
    plan_sweep,
    run_all,
)

EIGHT = {
    "weighted_mean", "trimmed_mean", "faba", "centered_clipping", "clipped_gossip", "ios", "rfa",
    "lfighter",
}  # fmt: skip
BY_PARTITION = ("fig2", "fig5", "fig7")


def cells_of(*names, seeds=1):
    return [SETTINGS[name].cells(first_seeds(seeds)) for name in names]


@pytest.mark.parametrize(
    ("name", "network"),
    [("fig2", "two_castle"), ("fig4", "two_castle"), ("fig5", "line"), ("fig7", "fan")],
)
def test_a_figure_has_eight_rules_and_the_baseline_on_three_partitions(name, network):
    [cells] = cells_of(name)
    assert len(cells) == 3 * 9
    for partition, choice in (
        ("iid", "iid"),
        ("mild", "dirichlet:alpha=1.0"),
        ("by_class", "by_class"),
    ):
        mine = {c.place.rule: c.spec for c in cells if c.place.partition == partition}
        assert set(mine) == EIGHT | {"baseline"}
        assert {str(spec.partition) for spec in mine.values()} == {choice}
        assert {spec.network.name for spec in mine.values()} == {network}
        for rule, spec in mine.items():
            assert (spec.iterations, spec.every, spec.metrics) == (1000, 20, None)
            found = network_of(spec)
            assert (found.agents, len(found.regular)) == (10, 10 if rule == "baseline" else 9)
            assert spec.aggregator.name == ("weighted_mean" if rule == "baseline" else rule)


def test_figure_1_is_the_motivating_example():
    [cells] = cells_of("fig1")
    assert len(cells) == 2 * 7
    assert {cell.place.network for cell in cells} == {"two_castle", "fan"}
    assert {cell.place.partition for cell in cells} == {"by_class"}
    assert {cell.place.rule for cell in cells} == EIGHT - {"rfa", "lfighter"} | {"baseline"}
    assert {(cell.spec.iterations, cell.spec.every) for cell in cells} == {(500, 10)}


def test_labels_are_flipped_and_steps_are_as_in_the_paper():
    for cell in (cell for cells in cells_of(*SETTINGS) for cell in cells):
        spec = cell.spec
        assert (str(spec.attack), spec.model, spec.weight_decay) == ("label_flip", "softmax", 0)
        step = training.schedule(spec.schedule.name, **spec.schedule.options)
        assert [step(k, 1000) for k in (1, 4, 100)] == pytest.approx([0.1, 0.05, 0.01])
        clips = cell.place.rule in ("centered_clipping", "clipped_gossip")
        assert spec.aggregator.options == ({"threshold": 0.1} if clips else {})


def test_figures_2_and_4_show_the_same_runs():
    second, fourth = cells_of("fig2", "fig4")
    assert [cell.spec for cell in second] == [cell.spec for cell in fourth]
    assert len(distinct_specs([second, fourth])) == 27


@pytest.mark.parametrize(("seeds", "runs"), [(1, 81), (2, 135), (3, 189)])
def test_only_what_is_drawn_at_random_is_run_for_every_seed(seeds, runs):
    cells = cells_of(*BY_PARTITION, seeds=seeds)
    assert len(distinct_specs(cells)) == runs
    found = {(cell.place.partition, cell.spec.seed) for figure in cells for cell in figure}
    drawn = {(partition, seed) for partition in ("iid", "mild") for seed in range(seeds)}
    assert found == drawn | {("by_class", 0)}


def test_seeds_change_what_is_drawn_and_nothing_by_class():
    for cell in cells_of("fig2", seeds=1)[0][::9]:
        one, other = (
            partition_of(cell.spec.model_copy(update={"seed": seed}), 10).order for seed in (0, 7)
        )
        assert np.array_equal(one, other) == (cell.place.partition == "by_class")


def test_by_class_every_seed_gives_the_same_bits(tiny_mnist):
    cells = SETTINGS["fig2"].shortened(iterations=3).cells()
    specs = [cell.spec for cell in cells if cell.place.partition == "by_class"]
    for one, other in zip(
        run_all(specs, 1),
        run_all([spec.model_copy(update={"seed": 7}) for spec in specs], 1),
        strict=True,
    ):
        assert one.models.equal(other.models)
        for metric, values in one.metrics.items():
            assert np.array_equal(values, other[metric], equal_nan=True), metric


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_three_networks_are_trained_together(tmp_path, seeds):
    plan = plan_sweep(distinct_specs(cells_of(*BY_PARTITION, seeds=seeds)), Store(tmp_path))
    assert not plan.refused
    assert [len(group) for group in plan.groups] == [27] * (2 * seeds + 1)
    for group in plan.groups:
        specs = list(group.values())
        assert {spec.network.name for spec in specs} == set(NETWORKS)
        assert len({(str(spec.partition), spec.seed) for spec in specs}) == 1


def test_everything_about_mnist():
    assert set(SETTINGS) < set(MNIST)
    assert set(MNIST) - set(SETTINGS) == {"fig9", "fig10", "table1", "table2"}
    assert len(distinct_specs(cells_of(*SETTINGS))) == 14 + 81


@pytest.mark.parametrize(
    ("quick", "iterations", "expected"),
    [
        (False, None, (1000, 20)),
        (True, None, (40, 4)),
        (False, 7, (7, 20)),
        (True, 100, (100, 4)),
    ],
)
def test_a_shorter_version_keeps_the_rest(quick, iterations, expected):
    full = SETTINGS["fig5"]
    short = full.shortened(quick, iterations)
    assert (short.iterations, short.every) == expected
    assert (short.networks, short.rules, short.metrics) == (full.networks, full.rules, full.metrics)


def test_there_is_at_least_one_seed():
    assert first_seeds(3) == (0, 1, 2)
    with pytest.raises(BezoarError, match="seeds: expected at least 1, found 0"):
        first_seeds(0)
