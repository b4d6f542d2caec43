from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bezoar import BezoarError, data

KINDS = [
    ("iid", {}),
    ("dirichlet", {"alpha": 1.0}),
    ("dirichlet", {"alpha": 0.3}),
    ("by_class", {}),
]


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("kind", "options"), KINDS)
@given(
    seed=st.integers(0, 1000),
    classes=st.integers(1, 12),
    agents=st.integers(1, 15),
    samples=st.integers(60, 400),
)
def test_every_sample_has_one_owner_and_nobody_is_empty(
    kind, options, seed, classes, agents, samples
):
    # Enough of every class that even a split class reaches all of its agents.
    labels = rng(seed).permutation(np.arange(samples) % classes)
    assume(samples // classes >= agents)
    try:
        made = data.partition(kind, **options)(labels, classes, agents, rng(seed))
    except BezoarError:
        assume(kind != "dirichlet")  # the one that may give up; the others must not
        raise
    assert made.agents == agents
    assert sorted(made.order.tolist()) == list(range(samples))
    assert np.all(made.sizes > 0)
    assert made.sizes.sum() == samples
    again = data.partition(kind, **options)(labels, classes, agents, rng(seed))
    assert np.array_equal(made.order, again.order)
    assert np.array_equal(made.offsets, again.offsets)
    held = made.holdings(labels, classes)
    for agent in range(agents):
        mine = labels[made.samples(agent)]
        assert held[agent].tolist() == np.bincount(mine, minlength=classes).tolist()


def test_iid_is_even_and_random():
    labels = np.repeat(np.arange(10), 100)
    made = data.partition("iid")(labels, 10, 7, rng())
    assert made.sizes.max() - made.sizes.min() <= 1
    other = data.partition("iid")(labels, 10, 7, rng(1))
    assert not np.array_equal(made.order, other.order)
    # 143 of 1000 samples at random hold about 14 of each class, never only a few of them.
    assert made.holdings(labels, 10).min() > 2


def test_by_class_deals_classes_by_remainder():
    labels = rng().integers(0, 10, 500)
    made = data.partition("by_class")(labels, 10, 4, rng())
    for agent in range(4):
        assert set(labels[made.samples(agent)] % 4) == {agent}


def test_by_class_splits_a_class_evenly_when_classes_are_few():
    labels = rng().permutation(np.repeat(np.arange(3), [100, 101, 102]))
    made = data.partition("by_class")(labels, 3, 8, rng())
    held = made.holdings(labels, 3)
    for agent in range(8):
        assert np.flatnonzero(held[agent]).tolist() == [agent % 3]
    for kind in range(3):
        shares = held[kind::3, kind]
        assert shares.max() - shares.min() <= 1


def test_small_alpha_leaves_fewer_classes_to_an_agent():
    labels = np.repeat(np.arange(10), 500)
    largest = [
        np.mean(
            [
                (
                    held := data.partition("dirichlet", alpha=alpha)(
                        labels, 10, 10, rng(s)
                    ).holdings(labels, 10)
                )
                .max(1)
                .sum()
                / held.sum()
                for s in range(5)
            ]
        )
        for alpha in (0.1, 1.0, 100.0)
    ]  # the share of an agent's samples that are of its commonest class
    assert largest[0] > largest[1] + 0.1 > largest[2] + 0.2


def test_dirichlet_gives_up_and_says_what_to_change():
    labels = np.repeat(np.arange(2), 30)
    with pytest.raises(BezoarError, match=r"100 draws with alpha 0.01 .* raise alpha or use fewer"):
        data.partition("dirichlet", alpha=0.01)(labels, 2, 50, rng())


@pytest.mark.parametrize("kind", ["iid", "dirichlet", "by_class"])
def test_more_agents_than_samples_are_refused(kind):
    with pytest.raises(BezoarError, match="3 samples are too few for 4 agents"):
        data.partition(kind)(np.array([0, 1, 0]), 2, 4, rng())


def test_any_number_of_agents_draws_as_many_samples_each():
    labels = np.array([0, 1, 0])
    found = data.partition("drawn", samples=5)(labels, 2, 200, rng())
    assert (found.sizes == 5).all()
    np.testing.assert_array_equal(np.unique(found.order), [0, 1, 2])
    again = data.partition("drawn", samples=5)(labels, 2, 200, rng())
    np.testing.assert_array_equal(found.order, again.order)


def test_by_class_refuses_an_agent_without_samples():
    with pytest.raises(BezoarError, match="agent 2 gets no samples"):
        data.partition("by_class")(np.array([0, 0, 1, 1]), 3, 3, rng())


@pytest.mark.parametrize(
    ("owners", "told"),
    [
        ([1, 2, 3, 1], r"expected 0 … 2, found 1 … 3"),
        ([-1, 0, 1, 2], r"expected 0 … 2, found -1 … 2"),
        ([0, 1, 2], r"expected 4 integers, found int64 of shape \[3\]"),
        ([[0, 1], [2, 0]], r"expected 4 integers, found int64 of shape \[2, 2\]"),
        ([0.0, 1.0, 2.0, 0.0], "expected 4 integers, found float64"),
        ([0, 2, 2, 0], "agent 1 gets no samples; use fewer agents"),
    ],
)
def test_a_partition_of_ones_own_gives_every_agent_some_samples(owners, told):
    class Own(data.Partitioner):
        def owners(self, labels, classes, agents, rng):
            return owners

    made = dataclass(frozen=True)(Own)()
    with pytest.raises(BezoarError, match=f"partition Own: .*{told}"):
        made(np.array([0, 1, 0, 1]), 2, 3, rng())


@pytest.mark.parametrize("alpha", [0, -1, 1e308, float("nan"), float("inf"), "many"])
def test_a_wrong_alpha_is_refused(alpha):
    with pytest.raises(BezoarError, match=r"alpha: expected a .*number.*, found"):
        data.partition("dirichlet", alpha=alpha)


def test_a_wrong_option_is_refused():
    with pytest.raises(BezoarError, match="partition dirichlet: no option 'alhpa'; allowed: alpha"):
        data.partition("dirichlet", alhpa=1)
