import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezoar import data
from bezoar.advice import Study, shipped_study
from bezoar.advice._pilots import pilot_data
from bezoar.advice._study import class_skew
from bezoar.data import Partition
from bezoar.experiments import read_choice

PARTITIONS = ("iid", "dirichlet:alpha=0.3", "by_class")


@pytest.fixture(scope="module")
def small():
    return pilot_data(data.mnist(), agents=10, seed=0)


@given(st.lists(st.floats(0, 1, width=16), min_size=1, max_size=20))
def test_losses_are_against_the_best_rule_of_a_case(accuracies):
    found = Study.of(("iid", {"mean": 1.0, "rfa": accuracy}) for accuracy in accuracies)
    losses = 1 - np.array(accuracies)
    assert found.losses["iid"]["mean"] == (len(accuracies), 0, 0)
    assert found.known(["iid"])["rfa"] == pytest.approx(np.sqrt(np.square(losses).mean()))


def test_a_rule_of_few_cases_is_not_known():
    cases = [("iid", {"mean": 0.9, "rfa": 0.8}), ("iid", {"mean": 0.9}), ("iid", {"mean": 0.9})]
    assert Study.of(cases).known(["iid"]).keys() == {"mean"}
    assert Study.of(cases[:2]).known(["iid"]).keys() == {"mean", "rfa"}
    assert Study.of(cases).known(["iid", "by_class"]) == {}


def test_the_shipped_study_is_read_as_it_was_written():
    found = shipped_study()
    assert Study.read(found.text()) == found
    assert tuple(found.losses) == PARTITIONS
    for rules in found.losses.values():
        for rule in rules:
            assert str(read_choice("aggregator", rule)) == rule


def test_skew_is_the_distance_from_the_shares_of_all(small):
    # Whoever has one class alone lacks the shares of all others.
    labels = small.train_labels
    one_class_each = Partition.from_owners(labels.astype(np.int64), small.classes)
    assert class_skew(one_class_each, small) == pytest.approx(1 - 1 / small.classes)
    alone = Partition.from_owners(np.zeros(len(labels), dtype=np.int64), 1)
    assert class_skew(alone, small) == pytest.approx(0)


@pytest.mark.parametrize(
    ("partition", "kind"),
    [
        ("by_class", "by_class"),
        ("dirichlet:alpha=100", "iid"),
        ("dirichlet:alpha=0.4", "dirichlet:alpha=0.3"),
        ("dirichlet:alpha=0.02", "by_class"),
    ],
)
def test_other_partitions_are_taken_for_what_they_are_most_like(partition, kind, small):
    assert shipped_study().kind(partition, small, 10, seed=0) == kind
