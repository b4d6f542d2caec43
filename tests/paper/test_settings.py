"""The paper's settings, as its section on numerical experiments states them."""

import numpy as np
import pytest

from bezoar import BezoarError
from bezoar.experiments import Store, make_plan, network_of, partition_of, run_all
from bezoar.paper import MNIST_FIGURES, NETWORK_TITLES, SETTINGS

EIGHT = {
    "weighted_mean", "trimmed_mean", "faba", "centered_clipping", "clipped_gossip", "ios", "rfa",
    "lfighter",
}  # fmt: skip
BY_PARTITION = ("fig2", "fig5", "fig7")


def runs_of(*names, seeds=1):
    return [SETTINGS[name].runs(seeds) for name in names]


def distinct_specs(figures):
    return list(dict.fromkeys(spec for runs in figures for _, spec in runs))


@pytest.mark.parametrize(
    ("name", "network"),
    [("fig2", "two_castle"), ("fig4", "two_castle"), ("fig5", "line"), ("fig7", "fan")],
)
def test_a_figure_has_eight_rules_and_the_baseline_on_three_partitions(name, network):
    [runs] = runs_of(name)
    assert len(runs) == 3 * 9
    for partition, choice in (
        ("iid", "iid"),
        ("mild", "dirichlet"),
        ("by_class", "by_class"),
    ):
        mine = {place.rule: spec for place, spec in runs if place.partition == partition}
        assert set(mine) == EIGHT | {"baseline"}
        assert {str(spec.partition) for spec in mine.values()} == {choice}
        assert {spec.network.name for spec in mine.values()} == {network}
        for rule, spec in mine.items():
            assert (spec.iterations, spec.every, spec.metrics) == (1000, 20, None)
            found = network_of(spec)
            assert (found.agents, len(found.regular)) == (10, 10 if rule == "baseline" else 9)
            assert spec.aggregator.name == ("weighted_mean" if rule == "baseline" else rule)


def test_figure_1_is_the_motivating_example():
    [runs] = runs_of("fig1")
    assert len(runs) == 2 * 7
    assert {place.network for place, _ in runs} == {"two_castle", "fan"}
    assert {place.partition for place, _ in runs} == {"by_class"}
    assert {place.rule for place, _ in runs} == EIGHT - {"rfa", "lfighter"} | {"baseline"}
    assert {(spec.iterations, spec.every) for _, spec in runs} == {(500, 10)}


def test_labels_are_flipped_and_steps_are_as_in_the_paper():
    for place, spec in (run for runs in runs_of(*SETTINGS) for run in runs):
        assert (str(spec.attack), spec.model, spec.weight_decay) == ("label_flip", "softmax", 0)
        step = spec.schedule.make()
        assert [step(k, 1000) for k in (1, 4, 100)] == pytest.approx([0.1, 0.05, 0.01])
        clips = place.rule in ("centered_clipping", "clipped_gossip")
        assert str(spec.aggregator).partition(":")[2] == ("threshold=0.1" if clips else "")


def test_figures_2_and_4_show_the_same_runs():
    second, fourth = runs_of("fig2", "fig4")
    assert second == fourth
    assert len(distinct_specs([second, fourth])) == 27


@pytest.mark.parametrize(("seeds", "count"), [(1, 81), (2, 135), (3, 189)])
def test_only_what_is_drawn_at_random_is_run_for_every_seed(seeds, count):
    figures = runs_of(*BY_PARTITION, seeds=seeds)
    assert len(distinct_specs(figures)) == count
    found = {(place.partition, spec.seed) for runs in figures for place, spec in runs}
    drawn = {(partition, seed) for partition in ("iid", "mild") for seed in range(seeds)}
    assert found == drawn | {("by_class", 0)}


def test_seeds_change_what_is_drawn_and_nothing_by_class():
    for place, spec in runs_of("fig2", seeds=1)[0][::9]:
        one, other = (
            partition_of(spec.model_copy(update={"seed": seed}), 10).order for seed in (0, 7)
        )
        assert np.array_equal(one, other) == (place.partition == "by_class")


def test_by_class_every_seed_gives_the_same_bits(tiny_mnist):
    runs = SETTINGS["fig2"].shortened(iterations=3).runs()
    specs = [spec for place, spec in runs if place.partition == "by_class"]
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
    plan = make_plan(distinct_specs(runs_of(*BY_PARTITION, seeds=seeds)), Store(tmp_path))
    assert not plan.refused
    assert [len(group) for group in plan.groups] == [27] * (2 * seeds + 1)
    for group in plan.groups:
        specs = [run.spec for run in group.values()]
        assert {spec.network.name for spec in specs} == set(NETWORK_TITLES)
        assert len({(str(spec.partition), spec.seed) for spec in specs}) == 1


def test_everything_about_mnist():
    assert set(SETTINGS) < set(MNIST_FIGURES)
    assert set(MNIST_FIGURES) - set(SETTINGS) == {"fig9", "fig10", "table1", "table2"}
    assert len(distinct_specs(runs_of(*SETTINGS))) == 14 + 81


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
    with pytest.raises(BezoarError, match="seeds: expected at least 1, found 0"):
        SETTINGS["fig2"].runs(0)
