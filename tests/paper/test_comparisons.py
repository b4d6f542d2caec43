"""What the paper's figures compare, and how models are trained, as its experiments state it."""

import numpy as np
import pytest

from bezoar import BezoarError, theory
from bezoar.experiments import Store, make_plan, network_of, partition_of, run_all
from bezoar.paper import (
    ALL_FIGURES,
    FIGURES,
    MNIST_FIGURES,
    NETWORK_TITLES,
    THRESHOLD_STUDY,
    Variant,
    variant_name,
)

EIGHT = {
    "weighted_mean", "trimmed_mean", "faba", "centered_clipping", "clipped_gossip", "ios", "rfa",
    "lfighter",
}  # fmt: skip
BY_PARTITION = ("fig2", "fig5", "fig7")
MNIST = ("fig1", "fig2", "fig4-mnist", "fig5", "fig7")
AUTHORS = Variant(setting="authors")
SMALL = Variant(scale="small")


def runs_of(*names, seeds=1, variant=None):
    """The runs of each figure, on all of its datasets."""
    return [
        [run for part in FIGURES[name].comparisons(variant) for run in part.runs(seeds)]
        for name in names
    ]


def distinct_specs(figures):
    return list(dict.fromkeys(spec for runs in figures for _, spec in runs))


@pytest.mark.parametrize(
    ("name", "network"),
    [
        *(("fig2", "two_castle"), ("fig4-mnist", "two_castle"), ("fig5", "line"), ("fig7", "fan")),
        *(("fig3", "two_castle"), ("fig6", "line"), ("fig8", "fan"), ("fig11", "two_castle")),
    ],
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
            assert spec.iterations == 1000
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
    for place, spec in (run for runs in runs_of(*MNIST) for run in runs):
        assert (str(spec.attack), spec.model.name, spec.weight_decay) == (
            "label_flip",
            "softmax",
            0,
        )
        assert (spec.start.name, spec.batch) == ("zero", None)
        step = spec.schedule.make()
        assert [step(k, 1000) for k in (1, 4, 100)] == pytest.approx([0.1, 0.05, 0.01])
        clips = place.rule in ("centered_clipping", "clipped_gossip")
        assert str(spec.aggregator).partition(":")[2] == ("threshold=0.1" if clips else "")


@pytest.mark.parametrize(
    ("name", "dataset", "model", "steps"),
    [
        *(
            (name, "cifar100", "resnet18", [0.03, 0.015, 0.003])
            for name in ("fig3", "fig6", "fig8")
        ),
        *((f"fig{n}", "tiny_imagenet", "resnet34", [0.03, 0.03, 0.03]) for n in (11, 12, 13)),
    ],
)
def test_networks_are_trained_as_in_the_paper(name, dataset, model, steps):
    for place, spec in runs_of(name)[0]:
        assert (spec.dataset.name, spec.model.name, spec.batch) == (dataset, model, 32)
        assert (spec.model.options["width"], spec.start.name) == (64, "random")
        step = spec.schedule.make()
        assert [step(k, 1000) for k in (1, 4, 100)] == pytest.approx(steps)
        threshold = {"centered_clipping": "100.0", "clipped_gossip": "0.1"}.get(place.rule)
        told = f"threshold={threshold}" if threshold else ""
        assert str(spec.aggregator).partition(":")[2] == told


def test_figures_12_and_13_vary_the_poisoned_and_all_agents():
    for name, sizes in {
        "fig12": [(10, 9), (10, 8), (10, 7)],
        "fig13": [(w, w - 1) for w in (10, 20, 30)],
    }.items():
        networks = [network_of(s) for place, s in runs_of(name)[0] if place.rule == "ios"]
        assert [(network.agents, len(network.regular)) for network in networks] == sizes
        for network in networks:  # the paper's condition for the weighted mean to be ahead
            rates = theory.contamination(network)
            assert rates.delta < rates.delta_max


def test_figure_4_shows_the_runs_of_figures_2_and_3():
    second, third, fourth, half = runs_of("fig2", "fig3", "fig4", "fig4-mnist")
    assert fourth == second + third
    assert half == second


# Scales and settings.


def test_the_authors_settings():
    for name in MNIST:
        for place, spec in runs_of(name, variant=AUTHORS)[0]:
            assert (spec.iterations, spec.weight_decay, spec.start.name) == (10_000, 0.01, "random")
            assert (spec.batch, spec.order) == (5000, "consecutive")
            # Their first iteration is the zeroth, with the step 0.03/√(0+1).
            assert spec.schedule.make()(1, 10_000) == 0.03
            options = spec.aggregator.options
            assert options.get("keep_own", False) == (place.rule in ("trimmed_mean", "faba", "ios"))
            assert options.get("memory", False) == (place.rule == "centered_clipping")
            clips = place.rule in ("centered_clipping", "clipped_gossip")
            assert options.get("threshold") == (0.03 if clips else None)
    for place, spec in runs_of("fig3", variant=AUTHORS)[0]:
        assert (spec.iterations, spec.weight_decay) == (1000, 0.0085)
        assert (spec.start.name, spec.start.options["new_output"]) == ("pretrained", True)
        assert {"accuracy_all", "variance_norm"} <= set(spec.metrics)
        thresholds = {"centered_clipping": 100, "clipped_gossip": 0.1}
        assert spec.aggregator.options.get("threshold") == thresholds.get(place.rule)


def test_the_small_scale_has_narrow_networks_and_larger_steps():
    for name in ("fig3", "fig6", "fig8", "fig11"):
        for (_, spec), (_, full) in zip(
            *runs_of(name, variant=SMALL), runs_of(name)[0], strict=True
        ):
            assert spec.model.name == full.model.name
            assert spec.model.options["width"] < full.model.options["width"]
            assert spec.iterations < full.iterations
            assert spec.schedule.make()(1, 100) > full.schedule.make()(1, 100)
            assert spec.start.name == "pretrained"
    for name in MNIST:  # softmax regression is small already
        assert runs_of(name, variant=SMALL) == runs_of(name)


def test_variants_never_share_a_name():
    every = [
        Variant(scale, setting)
        for scale in ("paper", "small", "quick")
        for setting in ("paper", "authors")
    ]
    for name, figure in FIGURES.items():
        names = {}
        for variant in every:
            specs = tuple(tuple(runs) for runs in runs_of(name, variant=variant))
            assert names.setdefault(variant_name(figure, variant), specs) == specs
        assert variant_name(figure, Variant()) == name
        assert f"{name}-authors" in names
    assert variant_name(FIGURES["fig3"], Variant("small", "authors")) == "fig3-small-authors"
    assert variant_name(FIGURES["fig2"], SMALL) == "fig2"
    assert variant_name(FIGURES["fig12"], SMALL) == "fig12-small"  # on MNIST instead


def test_thresholds_scale_with_the_steps():
    [cc] = {
        s.aggregator.options["threshold"]
        for p, s in runs_of("fig3", variant=SMALL)[0]
        if p.rule == "clipped_gossip"
    }
    assert cc == pytest.approx(0.1 * 0.5 / 0.03, rel=0.01)


def test_the_threshold_study_shares_the_figures_runs():
    study, *others = THRESHOLD_STUDY.comparisons()
    specs = {spec for _, spec in study.runs()}
    assert len(specs) == 3 * (2 * 8 + 2)
    by_class = {
        spec
        for runs in runs_of(*BY_PARTITION)
        for place, spec in runs
        if place.partition == "by_class"
        and place.rule in ("weighted_mean", "centered_clipping", "clipped_gossip", "baseline")
    }
    assert by_class < specs
    found = {
        s.aggregator.options["threshold"]
        for part in others
        for p, s in part.runs()
        if "clip" in p.rule
    }
    assert found == {0.03}


# Seeds, and what is trained together.


@pytest.mark.parametrize(("seeds", "count"), [(1, 81), (2, 135), (3, 189)])
def test_only_what_is_drawn_at_random_is_run_for_every_seed(seeds, count):
    figures = runs_of(*BY_PARTITION, seeds=seeds)
    assert len(distinct_specs(figures)) == count
    found = {(place.partition, spec.seed) for runs in figures for place, spec in runs}
    drawn = {(partition, seed) for partition in ("iid", "mild") for seed in range(seeds)}
    assert found == drawn | {("by_class", 0)}


@pytest.mark.parametrize(
    ("name", "variant", "count"),
    [
        ("fig1", AUTHORS, 2),  # the start is random
        ("fig3", None, 2),  # and so are batches
        ("fig12", SMALL, 1),
    ],
)
def test_seeds_count_by_class_where_training_is_random(name, variant, count):
    [runs] = runs_of(name, seeds=2, variant=variant)
    assert {spec.seed for place, spec in runs if place.partition == "by_class"} == set(range(count))


def test_by_class_more_agents_than_classes_share_them_at_random():
    [runs] = runs_of("fig13", seeds=2, variant=SMALL)
    seeds = {}
    for place, spec in runs:
        seeds.setdefault(place.network, set()).add(spec.seed)
    assert list(seeds.values()) == [{0}, {0, 1}, {0, 1}]


def test_seeds_change_what_is_drawn_and_nothing_by_class():
    for place, spec in runs_of("fig2", seeds=1)[0][::9]:
        one, other = (
            partition_of(spec.model_copy(update={"seed": seed}), 10).order for seed in (0, 7)
        )
        assert np.array_equal(one, other) == (place.partition == "by_class")


def test_by_class_every_seed_gives_the_same_bits(tiny_mnist):
    [runs] = runs_of("fig2", variant=Variant(iterations=3))
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


def test_everything_about_mnist_and_everything():
    theory_alone = {"fig9", "fig10", "table1", "table2"}
    assert set(MNIST_FIGURES) == set(MNIST) | theory_alone
    assert len(distinct_specs(runs_of(*MNIST))) == 14 + 81
    assert set(ALL_FIGURES) == {*(f"fig{n}" for n in range(1, 14)), "table1", "table2"}


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (Variant(), (1000, 20, 1000)),
        (Variant(scale="quick"), (40, 4, 1000)),
        (Variant(iterations=7), (7, 20, 1000)),
        (Variant(scale="quick", iterations=100), (100, 4, 1000)),
        (AUTHORS, (10_000, 200, 10_000)),
    ],
)
def test_a_shorter_version_knows_how_long_the_figure_is(variant, expected):
    [part] = FIGURES["fig5"].comparisons(variant)
    _, spec = part.runs()[0]
    assert (spec.iterations, spec.every, part.recipe.length) == expected


@pytest.mark.parametrize("setting", ["paper", "authors"])
def test_longer_trainings_share_runs_and_have_as_many_measurements(setting):
    usual, longer = Variant(setting=setting), Variant(setting=setting, iterations=30_000)
    points = {spec.iterations / spec.every for _, spec in runs_of("fig2", variant=usual)[0]}
    motivating, *others = runs_of("fig1", "fig2", "fig7", variant=longer)
    assert {spec for _, spec in motivating} < {spec for runs in others for _, spec in runs}
    assert {spec.iterations / spec.every for _, spec in motivating} == points


def test_there_is_at_least_one_seed():
    with pytest.raises(BezoarError, match="seeds: expected at least 1, found 0"):
        FIGURES["fig2"].comparisons()[0].runs(0)
