"""Rules side by side on a network: the ranking, what it can carry, and what is impossible."""

import json

import networkx as nx
import numpy as np
import pytest
import torch
from sweep_server import some_digits
from typer.testing import CliRunner

import bezoar
from bezoar import BezoarError, Network, compare
from bezoar.advice import Comparison, Standing
from bezoar.cli._main import app
from bezoar.experiments import RunSpec, Store, network_of
from bezoar.report import Curve
from bezoar.training import METRICS, History

FIELDS = {"samples": 400, "iterations": 4, "partition": "by_class"}


@pytest.fixture(scope="module")
def star():
    """A hub with two poisoned leaves: rules that must keep a majority are impossible at a leaf."""
    return Network(nx.star_graph(4), poisoned={3, 4})


@pytest.fixture(scope="module")
def found(star):
    return compare(star, seeds=2, **FIELDS)


def test_every_rule_is_ranked_or_impossible_and_nobody_is_left_out(found):
    names = [one.name for one in found.ranking]
    names += [failure.spec.aggregator.name for failure in found.impossible]
    assert sorted(names) == sorted(bezoar.aggregators.AGGREGATORS)
    assert found.baseline.name == "baseline"


def test_the_ranking_is_by_what_the_agents_hold(found):
    ends = [one.mean("accuracy_mean") for one in found.ranking]
    assert ends == sorted(ends, reverse=True)
    by_worst = compare(found.network, seeds=2, metric="accuracy_worst", rules="mean,ios", **FIELDS)
    ends = [one.mean("accuracy_worst") for one in by_worst.ranking]
    assert ends == sorted(ends, reverse=True)
    assert {one.name for one in by_worst.ranking} == {"mean", "ios", "local"}


def test_the_baseline_is_clean_and_every_rule_has_the_same_data(found):
    one = bezoar.run(
        network=found.network, poisoned=[], aggregator="weighted_mean", seed=1, **FIELDS, every=4
    )
    assert found.baseline.values("accuracy_mean")[1] == pytest.approx(one["accuracy_mean"][-1])
    assert found.baseline.mean("poison_share") == 0


def test_agents_assume_what_the_user_assumes_and_no_more(found):
    ios = next(one for one in found.ranking if one.name == "ios")
    assert ios.aggregator.options["estimate"] == found.estimate == "up_to_2"
    assert "takes 2 of its inputs for poisoned, or as many as its rule can" in found.page().caption
    exact = compare(found.network, rules=["ios", "faba:estimate=1"], estimate="exact", **FIELDS)
    assert "no real agent knows that" in exact.page().caption
    options = {one.name: one.aggregator.options for one in exact.ranking}
    options |= {f.spec.aggregator.name: f.spec.aggregator.options for f in exact.impossible}
    assert options["ios"]["estimate"] == "exact"
    assert options.get("faba:estimate=1", options.get("faba"))["estimate"] == 1


def test_impossible_rules_are_listed_with_the_reason(star):
    found = compare(star, rules="trimmed_mean,mean", estimate="exact", seeds=1, **FIELDS)
    [failure] = found.impossible
    assert "trimmed_mean: impossible at agent 3" in failure.reason
    table = found.page().tables[-1]
    assert (table.title, table.rows[0][1]) == ("Impossible here", failure.reason)
    assert found.document()["impossible"][0]["aggregator"] == "trimmed_mean"


def test_the_weakest_agents_are_shown_with_whom_they_listened_to(found):
    _, weakest, *_ = found.page().tables
    first = found.ranking[0].curve.runs[0]
    regular = [first.agents["accuracy"][-1, agent] for agent in found.network.regular]
    assert weakest.title.startswith(f"The weakest agents with {found.ranking[0].name}, seed 0")
    assert weakest.rows[0][1] == f"{min(regular):.4f}"
    assert len(found.document()["ranking"][0]["agents"]) == found.network.agents


def test_what_is_wrong_for_every_rule_is_an_error():
    with pytest.raises(BezoarError, match="network: 'fann' is not known; allowed: fan"):
        compare("fann")
    with pytest.raises(BezoarError, match="metric: neither more nor less of heterogeneity"):
        compare("fan", metric="heterogeneity")
    with pytest.raises(BezoarError, match="seed: a comparison takes 'seeds' in its place"):
        compare("fan", seed=3)
    with pytest.raises(BezoarError, match="seeds: expected at least one, found 0"):
        compare("fan", seeds=0)
    with pytest.raises(BezoarError, match="estimate"):
        compare("fan", estimate="many", **FIELDS)


def test_one_rule_and_a_number_of_numpy_are_enough():
    common = {"iterations": 1, "dataset": some_digits(20)}
    found = compare("fan", rules=bezoar.aggregators.create("median"), seeds=np.int64(1), **common)
    assert (found.seeds, [one.name for one in found.others]) == ((0,), ["median", "local"])
    table = compare("fan", rules={"name": "krum", "keep": 2}, seeds=[3], **common).others
    assert [one.name for one in table] == ["krum:keep=2", "local"]
    with pytest.raises(BezoarError, match=r"seeds: expected how many, .* found 1\.5"):
        compare("fan", seeds=1.5)


def test_groups_of_rules_may_stand_beside_others():
    common = {"seeds": 1, "iterations": 1, "dataset": some_digits(20)}
    names = {one.name for one in compare("fan", rules="paper, krum", **common).others}
    assert names == {"krum", "local", *bezoar.paper.RULES}


def test_before_the_first_exchange_nobody_has_listened_to_anyone():
    found = compare("fan", rules="ios", seeds=1, iterations=0, dataset=some_digits(20))
    rows = found.page().tables[0].rows
    assert [row[-2:] for row in rows] == [("", "–"), *[("+0.000", "–")] * 2]


def test_poisoned_agents_may_move_with_the_seed():
    common = {"poisoned": 2, "rules": "trimmed_mean", "iterations": 1, "dataset": some_digits(20)}
    still = compare("ring:agents=8", **common)
    assert "seed" not in still.page().title
    moving = compare("ring:agents=8", placement="random", **common)
    assert moving.page().title.endswith("with seed 0, others with other seeds")
    # Two of them may sit beside each other with a later seed, so that the rule is impossible there.
    told = compare("ring:agents=8", placement="random", estimate="exact", seeds=9, **common)
    assert [failure.spec.aggregator.name for failure in told.impossible] == ["trimmed_mean"]


def made_up(**ends):
    """A comparison of rules that end with these accuracies, one a seed."""

    def standing(name, values):
        runs = []
        for value in values:
            metrics = dict.fromkeys(METRICS, np.array([value]))
            runs.append(History(np.array([1]), metrics, torch.full((1, 1), value)))
        choice = RunSpec.read({"aggregator": "mean" if name == "baseline" else name}).aggregator
        return Standing(choice, Curve(name, tuple(runs)))

    spec = RunSpec.read({"network": "fan"})
    seeds = tuple(range(len(next(iter(ends.values())))))
    return Comparison(
        spec=spec,
        network=network_of(spec),
        metric=METRICS["accuracy_mean"],
        seeds=seeds,
        estimate="up_to_1",
        baseline=standing("baseline", [0.9] * len(seeds)),
        others=tuple(standing(name, values) for name, values in ends.items()),
    )


def test_a_verdict_only_where_the_spread_can_carry_it():
    clear = made_up(ios=[0.80, 0.81, 0.80], mean=[0.70, 0.72, 0.71], local=[0.5, 0.5, 0.5])
    assert clear.answer.startswith("ios is ahead of all others over 3 seeds by test accuracy")
    assert "0.803 ±0.006; the next, mean, has 0.710 ±0.010." in clear.answer
    blurred = made_up(ios=[0.80, 0.90, 0.70], mean=[0.79, 0.70, 0.85], local=[0.5, 0.5, 0.5])
    assert blurred.answer.startswith(
        "ios comes first, but mean cannot be told from it over 3 seeds."
    )
    assert [one.name for one in blurred.leaders] == ["ios", "mean"]
    gone = made_up(ios=[np.nan, np.nan])
    assert "finite" in gone.answer
    assert gone.page().tables[0].rows[1][1] == "diverged"
    alone = made_up(ios=[0.8], mean=[0.1])
    assert alone.answer.endswith("A single seed cannot carry a verdict.")


def test_rules_are_compared_seed_by_seed():
    """Seeds may move all rules alike; then a small difference is still a difference."""
    found = made_up(ios=[0.5, 0.7, 0.9], mean=[0.47, 0.671, 0.869])
    assert [one.name for one in found.leaders] == ["ios"]
    # But not one smaller than what so many test samples can show, however steady it is.
    found = made_up(ios=[0.5, 0.7, 0.9], mean=[0.495, 0.695, 0.895])
    assert [one.name for one in found.leaders] == ["ios", "mean"]


def test_no_communication_ahead_of_every_rule_is_said():
    found = made_up(ios=[0.5, 0.5, 0.51], local=[0.8, 0.8, 0.81])
    assert found.answer.startswith("No communication is ahead of every rule over 3 seeds")
    found = made_up(ios=[0.8, 0.8, 0.81], local=[0.8, 0.8, 0.81])
    assert "One of them is no communication" in found.answer


def test_on_the_command_line(tmp_path):
    plot = tmp_path / "p.png"
    words = "compare --network fan --poisoned 2 --samples 400 --iterations 4 --rules ios,mean"
    common = [*words.split(), "--seeds", "2", "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(app, [*common, "--plot", str(plot)])
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["rule", "agents", "worst", "average", "gap", "poison"] in lines
    assert {line[0] for line in lines if line} >= {"baseline", "ios", "mean", "local"}
    assert "Data: mnist, 400 of 60,000 training samples, drawn by the seed." in result.stdout
    assert "Every agent takes 2 of its inputs for poisoned" in result.stdout
    assert "Answer: " in result.stdout
    assert plot.read_bytes()[:4] == b"\x89PNG"
    assert len(Store(tmp_path / "store").finished_keys()) == 8
    document = json.loads(CliRunner().invoke(app, [*common, "--json"]).stdout)
    entry = document["ranking"][0]
    assert entry["accuracy_mean"] == pytest.approx(np.mean(entry["seeds"]["accuracy_mean"]))
    assert entry["gap"] == pytest.approx(
        entry["accuracy_mean"] - document["baseline"]["accuracy_mean"]
    )
    assert document["answer"] in " ".join(result.stdout.split())
