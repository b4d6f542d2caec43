"""Studies: their runs can be prepared, and what they say follows from what was measured."""

import numpy as np
import pytest

from bezoar import BezoarError, networks, studies
from bezoar.experiments import RunSpec, prepare
from bezoar.report import Page
from bezoar.studies import STUDIES, Case, Results, Study


def made_up(cases, seeds=3, seed=0):
    """Results that nobody measured."""
    rng = np.random.default_rng(seed)
    finals = rng.uniform(0.5, 0.9, (len(cases), 1)) + rng.normal(0, 1e-3, (len(cases), seeds))
    return Results(cases, finals, rng.uniform(0.1, 9, (len(cases), seeds)))


@pytest.mark.parametrize("name", STUDIES)
def test_every_case_can_be_prepared(name, tiny_mnist):
    study = STUDIES[name]
    places = set()
    for case in study.cases():
        places.add((case.panel, case.place, case.rule))
        given = {"aggregator": case.rule, **study.fields, **case.fields}
        run = prepare(RunSpec.read(given))
        assert run.network.poisoned
        if case.over_time is not None:
            turns = case.over_time(0)
            assert turns.poisoned == run.network.poisoned
            for k in (1, 2, 11, 150):  # nobody is asked for what its rule cannot do
                run.run.aggregator.check(turns.at(k))
    assert len(places) == len(study.cases())


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_found_is_told_and_drawn(name, tmp_path):
    study = STUDIES[name]
    results = made_up(study.cases())
    one, other = study.answer(results), study.answer(made_up(study.cases(), seed=1))
    assert all(sentence.endswith(".") for sentence in one)
    assert one != other
    # Drawn where all seeds end alike, whose mean may be beyond them by rounding.
    alike = Results(results.cases, np.repeat(results.finals[:, :1], 3, axis=1), results.ratios)
    page = studies.write_study(tmp_path / name, study, alike, f"bezoar study {name}")
    assert len(page.tables[0].rows) == sum(len(results.places(panel)) for panel in results.panels)
    for panel in results.panels:
        place = results.places(panel)[0]
        best = results.best(panel, place)
        assert results.mean(panel, place, best) == max(
            results.mean(panel, place, rule) for rule in results.rules
        )


def test_the_weighted_mean_is_ahead_of_every_rule_only_if_no_seed_doubts_it():
    study = STUDIES["worst_labels"]
    ends = {"weighted_mean": [0.8, 0.8, 0.8], "ios": [0.7, 0.7, 0.7]}
    cases = study.cases()
    for other, ahead in (([0.6, 0.6, 0.6], 9), ([0.1, 0.1, 0.85], 0)):
        finals = np.array([ends.get(case.rule, other) for case in cases])
        first, *_ = study.answer(Results(cases, finals, np.ones_like(finals)))
        assert first.startswith(f"WeiMean is ahead of every other rule in {ahead} of 9 settings")


def test_a_small_study_becomes_a_page(tiny_mnist, tmp_path):
    rules = ("weighted_mean", "ios", "clipped_gossip:threshold=adaptive")
    cases = [
        Case(network, partition, rule, {"network": network, "partition": partition})
        for network in ("fan", "line")
        for partition in ("iid", "by_class")
        for rule in rules
    ]
    small = Study("small", "A study", "What?", "partition", lambda: cases, lambda r: ["That."])
    done = []
    results = studies.train_study(
        small, 2, 100, 4, workers=1, progress=lambda *told: done.append(told[:2])
    )
    assert done[-1][0] == done[-1][1]
    again = studies.train_study(small, 2, 100, 4, workers=2)
    assert np.array_equal(results.finals, again.finals)
    assert np.all((np.array(results.finals) > 0.1) & (np.array(results.finals) <= 1))
    page = studies.write_study(tmp_path / "small", small, results, "bezoar study small")
    assert Page.load(tmp_path / "small").caption == page.caption == "What? That."
    assert len(page.tables[0].rows) == 4
    (tmp_path / "stopped").mkdir()  # where a study was stopped before it was written
    path = studies.write_studies(tmp_path / "pages.md", tmp_path, ["other", "stopped", "small"])
    text = path.read_text()
    assert "## A study" in text
    assert "(pages/small.png)" in text
    assert (tmp_path / "pages" / "small.png").stat().st_size > 1000
    with pytest.raises(BezoarError, match=r"markdown: expected a name that ends in .md"):
        studies.write_studies(tmp_path / "pages.txt", tmp_path, ["small"])


def test_agents_change_seats_and_the_graph_stays():
    network = networks.fan(8, 1)
    turns = studies.shuffled_agents(network, 5, seed=3)
    assert all(turns.at(k) == network for k in range(1, 6))
    for first in (6, 11, 16):
        [other, *same] = [turns.at(k) for k in range(first, first + 5)]
        assert all(each == other for each in same)
        assert sorted(other.degrees) == sorted(network.degrees)
        assert other.poisoned == network.poisoned
    assert len({turns.at(k) for k in (1, 6, 11, 16)}) > 2
    assert studies.shuffled_agents(network, 5, seed=3).at(7) == turns.at(7)
    assert studies.shuffled_agents(network, 5, seed=4).at(7) != turns.at(7)
