from itertools import islice

from bezoar import networks
from bezoar.advice._scenarios import rounds

PARTITIONS, ATTACKS = ("iid", "by_class"), ("label_flip", "random_labels")


def first(count, *, poisoned=(1, 3), seed=0):
    network = networks.torus(rows=4, columns=4)
    return list(islice(rounds(network, poisoned, PARTITIONS, ATTACKS, seed), count))


def test_scenarios_that_are_trained_together_share_partition_and_seed():
    for groups in first(4):
        assert [group[0].partition for group in groups] == list(PARTITIONS)
        for group in groups:
            assert len({(one.partition, one.seed) for one in group}) == 1
            assert {one.attack for one in group} <= set(ATTACKS)


def test_numbers_and_places_change_from_round_to_round():
    found = [scenario for groups in first(4) for scenario in groups[0]]
    assert {len(scenario.network.poisoned) for scenario in found} == {1, 3}
    assert len({scenario.placement for scenario in found}) >= 4
    assert len({scenario.network.poisoned for scenario in found}) >= 5


def test_the_first_round_is_small_and_the_others_have_every_attack():
    small, large = first(2)
    assert [len(group) for group in small] == [1, 1]
    assert [len(group) for group in large] == [4, 4]
    assert {one.attack for group in large for one in group} == set(ATTACKS)


def test_they_follow_from_the_seed():
    assert first(3) == first(3)
    assert first(3) != first(3, seed=7)
