import itertools
import json
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from bezoar import BezoarError, advise, data, networks
from bezoar.advice import Study, advice_figure, advice_page, shipped_study
from bezoar.advice._advise import _partitions
from bezoar.advice._pilots import pilot_data, train_pilots
from bezoar.advice._scenarios import Scenario
from bezoar.cli._main import app
from bezoar.experiments import RunSpec, read_choice, run

RULES = ("mean", "median", "local")


@pytest.fixture(scope="module")
def advice():
    return advise(
        networks.ring(agents=6), 1, partition="by_class", rules=RULES, effort=(7, 20), workers=1
    )


def test_the_same_effort_gives_the_same_bits_whatever_the_number_of_workers(advice):
    network = networks.ring(agents=6)
    options = {"partition": "by_class", "rules": RULES, "effort": (7, 20), "workers": 2}
    again = advise(network, 1, **options).pilots
    assert np.array_equal(again.accuracy, advice.pilots.accuracy, equal_nan=True)
    assert len(again.scenarios) == 7


def test_a_budget_is_kept_and_tells_of_progress(monkeypatch):
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks) / 100)
    for module in ("_advise", "_rounds", "_pilots"):
        monkeypatch.setattr(f"bezoar.advice.{module}.time", clock)
    told = []
    found = advise(
        networks.ring(agents=6),
        1,
        partition="iid",
        rules=RULES,
        budget=2,
        workers=1,
        progress=lambda done, there, text: told.append((done, there)),
    )
    assert found.pilots is not None
    assert {there for _, there in told} == {2}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] < 2.1


def test_without_a_study_pilots_alone_decide(advice):
    found = advise(
        networks.ring(agents=6),
        1,
        partition="by_class",
        rules=RULES,
        effort=(1, 20),
        study=Study({}),
        workers=1,
    )
    assert len(found.pilots.scenarios) == 1
    assert "In 1 scenario mean lost" in found.reasons[0]
    assert "Tried in 1 scenario, for 20 iterations" in advice_page(found).caption
    assert all(rule.regret_worst == rule.regret_mean for rule in found.ranking)
    assert not any("study" in reason for reason in found.reasons)
    assert any("study" in reason for reason in advice.reasons)


def test_images_are_shrunk_to_means_of_squares():
    dataset = data.mnist()
    small = pilot_data(dataset, agents=10, seed=3)
    assert small.train.shape == (2000, 1, 14, 14)
    squares = dataset.test.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).round().astype(np.uint8)
    known = {bytes(image): label for image, label in zip(squares, dataset.test_labels, strict=True)}
    for image, label in zip(small.test, small.test_labels, strict=True):
        assert known[bytes(image[0])] == label


@pytest.mark.parametrize(
    ("shape", "small"),
    [((1, 1, 64), (1, 1, 16)), ((3, 30, 2), (3, 15, 1)), ((1, 9, 14), (1, 9, 14))],
)
def test_narrow_images_are_shrunk_to_one_pixel_at_the_least(shape, small):
    labels = np.arange(40) % 2
    samples = np.full((40, *shape), 200, dtype=np.uint8)
    images = data.Dataset("narrow", samples, labels, samples, labels, 2)
    found = pilot_data(images, agents=10, seed=0)
    assert found.sample_shape == small
    assert (found.train == 200).all()


def test_features_stay_as_they_are():
    images = data.mnist()
    flat = {part: getattr(images, part).reshape(-1, 784) / 255.0 for part in ("train", "test")}
    dataset = replace(images, **flat)
    assert pilot_data(dataset, agents=10, seed=0).sample_shape == (784,)


def test_a_pilot_is_a_run_like_any_other():
    small = pilot_data(data.mnist(), agents=6, seed=0)
    network = networks.ring(agents=6).with_poisoned([2])
    scenario = Scenario(network, "random", "by_class", "label_flip", 4)
    rules = {name: read_choice("aggregator", name) for name in ("mean", "rfa")}
    accuracy, measured = train_pilots(rules, [scenario], small, 8, time.monotonic() + 600, 1)
    assert measured == 8
    for name, found in zip(rules, accuracy[:, 0], strict=True):
        spec = RunSpec.read({**scenario.fields(), "dataset": small, "iterations": 8})
        assert run(spec, aggregator=name)["accuracy_mean"][-1] == pytest.approx(found, abs=2e-3)


def test_a_pilot_ends_at_its_deadline():
    small = pilot_data(data.mnist(), agents=6, seed=0)
    scenario = Scenario(networks.ring(agents=6), "random", "iid", "label_flip", 0)
    rules = {"mean": read_choice("aggregator", "mean")}
    _, measured = train_pilots(rules, [scenario], small, 1000, time.monotonic(), 1)
    assert measured == 0


def test_no_communication_is_not_recommended_where_everyone_has_one_class(advice):
    assert advice.recommended.name == "mean"
    assert [rule.aggregator.name for rule in advice.ranking][-1] == "local"
    assert advice.reasons
    assert any("mean" in reason for reason in advice.reasons)


def test_the_document_has_what_programs_read(advice):
    found = json.loads(json.dumps(advice.document()))
    assert found["recommended"] == {"aggregator": "mean", "options": {}}
    assert found["basis"] == "pilots"
    for rule in found["ranking"]:
        assert 0 <= rule["regret_mean"] <= rule["regret_worst"] <= 1
        assert rule["accuracy_worst"] <= rule["accuracy_mean"]
    assert all(len(scenario["poisoned"]) == 1 for scenario in found["scenarios"])


def test_page_and_picture(advice, tmp_path):
    page = advice_page(advice)
    assert page.title == "Recommended: mean"
    assert len(page.tables[0].rows) == len(advice.ranking)
    [path] = advice_figure(tmp_path / "advice.png", advice)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_by_default_the_study_answers_where_it_can():
    found = advise("fan", 1, partition="by_class")
    assert found.basis == "study"
    assert found.pilots is None
    assert found.ranking == shipped_study().ranking(
        ["by_class"], {str(rule.aggregator): rule.aggregator for rule in found.ranking}
    )
    assert found.recommended == found.ranking[0].aggregator
    assert "of the study" in found.reasons[0]
    assert "Nothing was tried" in found.reasons[-1]
    document = json.loads(json.dumps(found.document()))
    assert document["basis"] == "study"
    assert document["scenarios"] == []
    keys = {"aggregator", "regret_mean", "regret_worst", "accuracy_mean", "accuracy_worst"}
    assert all(keys <= rule.keys() for rule in document["ranking"])


def test_the_study_is_asked_for_what_agents_may_have():
    known = advise("fan", 1, partition="dirichlet:alpha=0.4")
    assert known.ranking == advise("fan", 1, partition="dirichlet:alpha=0.3").ranking
    assert "no dirichlet:alpha=0.4; with dirichlet:alpha=0.3" in known.reasons[1]
    unknown = advise("fan", 1)
    assert {rule.scenarios for rule in unknown.ranking} == {192}
    assert "How local data differ is not known" in unknown.reasons[1]


def test_the_study_ranks_rules_that_are_possible_and_asked_for():
    few = advise("fan", 1, rules=["faba", "median"])
    assert [rule.aggregator.name for rule in few.ranking] == ["faba", "median"]
    study = Study.of([("iid", {"mean": 0.8, "ios:estimate=3": 0.9})])
    found = advise("ring:agents=6", 1, study=study)
    assert [rule.aggregator.name for rule in found.ranking] == ["mean"]
    assert found.impossible.keys() == {"ios:estimate=3"}


def test_the_study_says_where_a_network_is_unlike_its_own():
    told = " ".join(advise("ring:agents=300", 100).reasons)
    assert "9 to 200 agents, this one has 300" in told
    assert "10% of the agents are poisoned, here up to 33%" in told
    assert "this one has" not in " ".join(advise("ring:agents=30", 3).reasons)


def test_ten_thousand_agents_are_answered_at_once():
    found = advise(networks.torus(100, 100), (100, 500), partition="by_class")
    assert found.basis == "study"
    assert "this one has 10,000" in " ".join(found.reasons)


def test_where_messages_are_poisoned_the_study_says_nothing():
    network, options = networks.ring(agents=6), {"rules": RULES, "effort": (1, 2), "workers": 1}
    found = advise(network, 1, threat="messages", partition="iid", **options)
    assert "study" not in " ".join([*found.reasons, advice_page(found).caption])


@pytest.mark.parametrize(
    "options",
    [
        {"threat": "messages"},
        {"dataset": data.mnist()},
        {"rules": ["mean", "ios:estimate=up_to_4"]},
        {"study": Study({})},
        {"budget": 1e-9},
    ],
)
def test_pilots_are_trained_where_the_study_cannot_answer(options, monkeypatch):
    monkeypatch.setattr("bezoar.advice._advise.BUDGET", 1e-9)
    with pytest.raises(BezoarError, match="too short for one pilot"):
        advise(networks.complete(agents=10), 1, partition="iid", workers=1, **options)


def test_the_theory_alone_is_said_to_be_that(tmp_path):
    found = advise("fan", 1, budget=0)
    assert found.document()["basis"] == "theory"
    assert found.recommended.name == "weighted_mean"
    assert "theory alone" in found.reasons[0]
    assert "the theory does not prefer this rule" in found.reasons[-1]
    robust = advise("fan", 1, budget=0, rules=["ios", "faba"])
    assert robust.recommended.name == "ios"
    assert "No mean is among the rules" in robust.reasons[-1]
    with pytest.raises(BezoarError, match="plot"):
        advice_figure(tmp_path / "advice.png", found)


def test_a_partition_that_so_many_agents_cannot_have_is_left_out_unless_it_was_given():
    small = pilot_data(data.mnist(), agents=10, seed=0)
    possible, left_out = _partitions(None, small, 1000, seed=0)
    assert possible == ["iid", "by_class"]
    assert "dirichlet" in left_out[0]
    with pytest.raises(BezoarError, match="dirichlet"):
        _partitions("dirichlet:alpha=0.3", small, 1000, seed=0)
    assert shipped_study().kind("dirichlet:alpha=100", small, 1000, seed=0) == "iid"


def test_fewer_samples_than_agents_are_an_error():
    few = pilot_data(data.mnist().drawn(5, np.random.default_rng(0)), agents=6, seed=0)
    with pytest.raises(BezoarError, match=r"partition: none of iid, .* is possible here"):
        advise(networks.ring(agents=6), 1, dataset=few, rules=RULES, effort=(1, 1))


def test_one_rule_may_be_given_by_its_name():
    found = advise("fan", 1, rules="faba")
    assert found.ranking == advise("fan", 1, rules=["faba"]).ranking


def test_numbers_that_are_not_known_are_a_range():
    assert advise("ring:agents=20", budget=0).poisoned == (1, 2, 4)
    assert advise("ring:agents=20", (2, 6), budget=0).poisoned == (2, 4, 6)
    assert advise("ring:agents=20", [2, np.int64(6)], budget=0).poisoned == (2, 4, 6)


@pytest.mark.parametrize("agents", [3, 4, 5, 6])
def test_of_few_agents_whose_number_of_poisoned_is_not_known_one_is_tried(agents):
    assert advise(networks.ring(agents=agents), budget=0).poisoned == (1,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"poisoned": 0}, "poisoned: expected a number from 1 to 9"),
        ({"poisoned": 10}, "poisoned: expected a number from 1 to 9"),
        ({"poisoned": (4, 2)}, "found 4-2"),
        ({"poisoned": "2"}, "poisoned: expected a number from 1 to 9, .*; found '2'"),
        ({"poisoned": (1, 2, 3)}, "poisoned: expected .* or a range of them; found 1-2-3"),
        ({"poisoned": []}, "poisoned: expected a number from 1 to 9"),
        ({"poisoned": 1, "budget": -1}, "budget: expected seconds from 0"),
        ({"poisoned": 1, "budget": "5m"}, "budget: expected seconds from 0, found '5m'"),
        ({"poisoned": 1, "budget": np.inf}, "budget: expected seconds from 0, found inf"),
        ({"poisoned": 1, "budget": np.nan}, "budget: expected seconds from 0, found nan"),
        ({"poisoned": 1, "effort": (0, 9)}, "effort: expected .*; found 0x9"),
        ({"poisoned": 1, "effort": (3,)}, "effort: expected scenarios and iterations, .* found 3"),
        ({"poisoned": 1, "effort": "24x200"}, "effort: expected .*; found '24x200'"),
        ({"poisoned": 1, "effort": (1, 2), "budget": 0}, "effort: .* found both"),
        ({"poisoned": 1, "threat": "weather"}, "threat: .*labels"),
        ({"poisoned": 1, "rules": ["isos"]}, "ios"),
        ({"poisoned": 1, "seed": -1}, "seed"),
        ({"poisoned": 1, "partition": "by_clas"}, "by_class"),
        ({"poisoned": 1, "budget": 1e-9}, "too short"),
    ],
)
def test_what_is_wrong_is_named(options, words):
    with pytest.raises(BezoarError, match=words):
        advise("fan", **options)


def command(*arguments):
    return CliRunner().invoke(app, ["advise", *arguments])


def test_the_command():
    result = command("--network", "fan", "--poisoned", "1", "--budget", "0")
    assert result.exit_code == 0, result.output
    assert "Recommended: weighted_mean" in result.output
    assert "Why" in result.output
    found = json.loads(command("--network", "fan", "--budget", "0", "--json").stdout)
    assert found["recommended"]["aggregator"] == "weighted_mean"


def test_the_command_tells_that_the_study_answers_and_how_to_try(tmp_path):
    picture = tmp_path / "advice.png"
    result = command("--network", "fan", "--poisoned", "1", "--plot", str(picture))
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "nothing was tried on this one" in told
    assert "--budget 5m" in told
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--poisoned", "some"), "such as 2, a range such as 1-4, or unknown; found 'some'"),
        (("--budget", "soon"), "a time such as 90s, 5m or 1h, found 'soon'"),
        (("--effort", "much"), "scenarios and iterations such as 24x200, found 'much'"),
        (("--budget", "0", "--plot", "a.png"), "plot: the theory alone has no losses to draw"),
    ],
)
def test_wrong_words_are_answered(arguments, words):
    result = command("--network", "fan", *arguments)
    assert result.exit_code != 0
    assert words in " ".join(str(result.exception or "").split() + result.output.split())
