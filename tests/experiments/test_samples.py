"""A run on a part of the data, drawn by its seed."""

import numpy as np
import pytest

from bezoar import BezoarError
from bezoar.experiments import RunSpec, Store, dataset_of, prepare, run_key, sweep
from bezoar.report import data_notes


def small(**fields):
    common = {"network": "ring:agents=4", "iterations": 1, "every": 1, "metrics": ["accuracy"]}
    return RunSpec.read({**common, **fields})


def test_every_rule_of_a_seed_gets_the_same_samples_and_another_seed_others():
    drawn = [
        dataset_of(small(samples=500, seed=seed, aggregator=rule))
        for seed, rule in [(0, "ios"), (0, "mean"), (1, "mean")]
    ]
    whole = dataset_of(small())
    assert drawn[0] is drawn[1]
    assert drawn[0].fingerprint != drawn[2].fingerprint
    assert all(len(each.train) == len(each.train_labels) == 500 for each in drawn)
    assert drawn[0].test is whole.test
    known = {
        sample.tobytes(): label
        for sample, label in zip(whole.train, whole.train_labels, strict=True)
    }
    for sample, label in zip(drawn[2].train, drawn[2].train_labels, strict=True):
        assert known[sample.tobytes()] == label
    assert len(np.unique(drawn[2].train.reshape(500, -1), axis=0)) == 500


def test_the_number_is_part_of_a_runs_name():
    assert len({run_key(small(samples=samples)) for samples in (None, 500, 501)}) == 3


def test_runs_with_as_many_samples_are_stepped_together():
    runs = [prepare(small(samples=500, aggregator=rule)) for rule in ("ios", "mean")]
    assert runs[0].together == runs[1].together
    assert runs[0].together != prepare(small(samples=400)).together


def test_results_say_so(tmp_path):
    swept = sweep([small(samples=500)], Store(tmp_path))
    note = "Data: mnist, 500 of 60,000 training samples, drawn by the seed."
    assert data_notes(swept.finished) == [note]


@pytest.mark.parametrize("found", [0, 60_001, 1.5])
def test_a_number_that_cannot_be(found):
    with pytest.raises(BezoarError, match=r"samples: expected"):
        prepare(small(samples=found))
