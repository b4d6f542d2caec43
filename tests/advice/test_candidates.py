import networkx
import pytest

from bezoar import Network, networks
from bezoar.advice._candidates import candidates


def test_agents_are_told_nothing_that_they_could_not_know():
    found, _ = candidates(networks.complete(agents=12), [3])
    for choice in found.values():
        if choice.make().uses_estimate():
            assert choice.options["estimate"].startswith("up_to_")
    assert {"faba:estimate=up_to_1", "faba:estimate=up_to_3"} <= found.keys()
    assert {"weighted_mean", "mean", "local", "rfa"} <= found.keys()


def test_numbers_that_all_agents_lower_to_the_same_are_tried_once():
    # On a ring an agent has three inputs, of which the trimmed mean can drop one at either end.
    found, _ = candidates(networks.ring(agents=8), [1, 4])
    assert [text for text in found if text.startswith("trimmed_mean")] == [
        "trimmed_mean:estimate=up_to_1"
    ]


def test_options_that_are_given_are_kept():
    found, _ = candidates(networks.complete(agents=6), [2], ["ios:estimate=2", "mean"])
    assert list(found) == ["ios:estimate=2", "mean"]
    found, _ = candidates(networks.complete(agents=6), [1], ["clipped_gossip:threshold=0.2"])
    assert list(found) == ["clipped_gossip:threshold=0.2"]


@pytest.mark.parametrize("estimate", ["", ",estimate=exact", ",estimate=max"])
@pytest.mark.parametrize("rule", ["krum:keep=most", "clipped_gossip:threshold=adaptive"])
def test_no_agent_is_told_the_truth_whatever_other_options_are_given(rule, estimate):
    found, _ = candidates(networks.complete(agents=6), [2], [rule + estimate])
    assert {choice.options["estimate"] for choice in found.values()} == {"up_to_1", "up_to_2"}
    option, value = rule.partition(":")[2].split("=")
    assert {choice.options[option] for choice in found.values()} == {value}


def test_an_impossible_rule_is_listed_with_the_reason():
    network = Network(networkx.path_graph(4))
    found, impossible = candidates(network, [1], ["faba:estimate=3", "mean"])
    assert list(found) == ["mean"]
    assert "impossible at agent" in impossible["faba:estimate=3"]


@pytest.mark.parametrize("agents", [5, 20])
def test_every_candidate_can_be_applied(agents):
    network = networks.star(agents=agents)
    found, impossible = candidates(network, [1, agents - 1])
    assert found
    for choice in found.values():
        choice.make().check(network)
    assert not set(found) & set(impossible)
