"""Names, options and networks that cannot be used; how rules are printed."""

import numpy as np
import pytest
import torch

from bezoar import BezoarError, aggregators, networks
from bezoar.exchange import Exchange

LABELS = {
    "weighted_mean": "WeiMean",
    "trimmed_mean": "TriMean",
    "faba": "FABA",
    "centered_clipping": "CC",
    "clipped_gossip": "CG",
    "ios": "IOS",
    "rfa": "RFA",
    "lfighter": "LFighter",
    "mean": "Mean",
    "median": "Median",
    "krum": "Krum",
    "nearest": "NNA",
    "clipped_sum": "CS+",
    "trimmed_sum": "GTS",
    "least_diameter": "MDA",
    "least_variance": "MVA",
    "least_eigenvalue": "SMEA",
    "caf": "CAF",
    "divide_and_conquer": "DnC",
    "meamed": "MeaMed",
    "bulyan": "Bulyan",
    "distance_filter": "SDFD",
    "total_variation": "TV",
    "ubar": "UBAR",
    "foolsgold": "FoolsGold",
    "balance": "BALANCE",
    "local": "Local",
}


@pytest.mark.parametrize(
    ("name", "network", "options", "agent", "inputs", "estimate"),
    [
        # Of agent 1's three inputs two are poisoned; agent 0 before it has two, one of them bad.
        ("trimmed_mean", networks.line(5, {1, 2}), {}, 0, 2, 1),
        ("trimmed_mean", networks.ring(5, {1, 3}), {}, 2, 3, 2),
        ("trimmed_mean", networks.line(4, poisoned=0), {"estimate": 1}, 0, 2, 1),
        ("trimmed_mean", networks.star(5, {1}), {"estimate": "max"}, 1, 2, 1),
        ("faba", networks.line(4, {0, 1}), {}, 0, 2, 2),
        ("faba", networks.ring(6, poisoned=0), {"estimate": 3}, 0, 3, 3),
        ("ios", networks.star(5, {0, 4}), {}, 4, 2, 2),
        ("ios", networks.star(6, {0, 1, 2}), {"estimate": "max"}, 1, 2, 3),
        ("krum", networks.line(4, {0, 1}), {}, 0, 2, 2),
    ],
)
def test_an_impossible_rule_names_agent_inputs_and_estimate(
    name, network, options, agent, inputs, estimate
):
    rule = aggregators.create(name, **options)
    told = (
        rf"{name}: impossible at agent {agent} of the {network.name} network, "
        rf"which has {inputs} inputs and takes {estimate} of them"
    )
    for attempt in (
        lambda: rule.check(network),
        lambda: Exchange([rule], [network]),
        lambda: rule(torch.zeros(network.agents, 3), network),
    ):
        with pytest.raises(BezoarError, match=told):
            attempt()


def test_one_impossible_network_among_several_is_refused():
    good, bad = networks.complete(6, 1), networks.complete(6, 3)
    rule = aggregators.create("trimmed_mean")
    rule.check(good)
    with pytest.raises(BezoarError, match="impossible at agent 0 of the complete network"):
        Exchange([rule] * 2, [good, bad])


@pytest.mark.parametrize(("name", "least"), [("trimmed_mean", 5), ("faba", 3), ("ios", 3)])
def test_the_smallest_possible_neighbourhood(name, least):
    rule = aggregators.create(name, estimate=2)
    rule.check(networks.complete(least, poisoned=0))
    with pytest.raises(BezoarError, match=f"{least - 1} inputs"):
        rule.check(networks.complete(least - 1, poisoned=0))


@pytest.mark.parametrize(
    ("found", "nearest"),
    [("trimed_mean", "trimmed_mean"), ("Faba", "faba"), ("kurm", "krum"), ("median_", "median")],
)
def test_unknown_names_list_the_nearest_first(found, nearest):
    with pytest.raises(
        BezoarError, match=f"aggregator: '{found}' is not known; allowed: {nearest},"
    ):
        aggregators.create(found)


def test_unknown_names_list_all_that_are_allowed():
    with pytest.raises(BezoarError) as refused:
        aggregators.create("zzz")
    for name in aggregators.AGGREGATORS:
        assert name in str(refused.value)


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("ios", {"mixng": "equal"}, r"ios: no option 'mixng'; allowed: mixing,"),
        ("ios", {"mixing": "eqaul"}, r"mixing: expected 'metropolis' or 'equal', found 'eqaul'"),
        ("clipped_gossip", {"mixing": "x"}, r"mixing: expected .*, found 'x'"),
        ("weighted_mean", {"mixing": None}, r"mixing: expected .*, found None"),
        ("mean", {"mixing": "equal"}, r"mean: no option 'mixing'; allowed: none"),
        ("trimmed_mean", {"estimate": -1}, r"estimate: .*found -1"),
        ("faba", {"estimate": 1.5}, r"estimate: .*found 1\.5"),
        ("ios", {"estimate": "some"}, r"estimate: .*found 'some'"),
        ("krum", {"estimate": False}, r"estimate: .*found False"),
        ("centered_clipping", {"threshold": 0}, r"threshold: .*found 0"),
        ("centered_clipping", {"threshold": float("nan")}, r"threshold: .*found nan"),
        ("clipped_gossip", {"threshold": -2.0}, r"threshold: .*found -2\.0"),
        ("clipped_gossip", {"threshold": "1"}, r"threshold: .*found '1'"),
        ("centered_clipping", {"steps": 0}, r"steps: .*found 0"),
        ("centered_clipping", {"steps": 1.5}, r"steps: .*found 1\.5"),
        ("rfa", {"smoothing": 0}, r"smoothing: .*found 0"),
        ("rfa", {"tolerance": -1}, r"tolerance: .*found -1"),
        ("rfa", {"iterations": 0}, r"iterations: .*found 0"),
        *(
            (name, {option: float("inf")}, rf"{option}: .*found inf")
            for name, option in [
                ("rfa", "smoothing"),
                ("clipped_sum", "rate"),
                ("trimmed_sum", "rate"),
                ("divide_and_conquer", "factor"),
                ("total_variation", "strength"),
            ]
        ),
        ("bucketing+mean", {"bucket": 10**20}, r"bucket: .*found 100000000000000000000"),
        ("lfighter", {"head": (1, 5)}, r"head: .*found \(1, 5\)"),
        ("lfighter", {"head": (3, 0)}, r"head: .*found \(3, 0\)"),
        ("lfighter", {"head": (3,)}, r"head: .*found \(3,\)"),
        ("lfighter", {"head": (3.0, 2)}, r"head: .*found \(3\.0, 2\)"),
        ("lfighter", {"head": 5}, r"head: .*found 5"),
    ],
)
def test_wrong_options_name_the_option_and_what_was_found(name, options, told):
    with pytest.raises(BezoarError, match=told):
        aggregators.create(name, **options)


def test_the_exact_estimate_was_once_called_true():
    exact = aggregators.Krum(estimate="exact")
    assert aggregators.create("krum", estimate=True) == exact
    assert aggregators.Krum(estimate="true") == aggregators.Krum(estimate=True) == exact


def test_labels_are_those_of_the_papers():
    assert {name: rule.label for name, rule in aggregators.AGGREGATORS.items()} == LABELS


@pytest.mark.parametrize("name", LABELS)
def test_str_is_the_label_and_repr_is_exact(name):
    rule = aggregators.create(name)
    assert str(rule) == LABELS[name]
    assert eval(repr(rule), vars(aggregators)) == rule


def test_repr_has_the_options():
    rule = aggregators.create("ios", mixing="equal", estimate=2, keep_own=True)
    assert repr(rule) == "IOS(mixing='equal', estimate=2, keep_own=True)"
    assert repr(aggregators.create("lfighter", head=[3, 2])) == "LFighter(head=(3, 2), on='models')"


def test_rules_with_the_same_options_are_the_same():
    assert aggregators.create("faba", estimate=1) == aggregators.FABA(estimate=1)
    assert len({aggregators.create("ios"), aggregators.IOS()}) == 1
    assert aggregators.create("ios") != aggregators.create("ios", keep_own=True)
    with pytest.raises(AttributeError):
        aggregators.create("faba").estimate = 3


@pytest.mark.parametrize(
    ("name", "options"), [("krum", {"keep": 10**20}), ("balance", {"reach": 1e200})]
)
def test_more_than_everything_is_everything(name, options):
    """However large a number is, it is no more than all inputs, or all distances."""
    messages = np.random.default_rng(1).normal(size=(6, 3))
    network = networks.complete(6, 1)
    enough = dict.fromkeys(options, 100)
    found, expected = (
        aggregators.create(name, **each)(messages, network) for each in (options, enough)
    )
    assert torch.equal(found, expected)


def test_estimates_reach_the_rule():
    messages = torch.tensor([[0.0], [1.0], [2.0], [3.0], [50.0]], dtype=torch.float64)
    network = networks.complete(5, {4})
    by_estimate = {
        estimate: float(aggregators.TrimmedMean(estimate=estimate)(messages, network)[0])
        for estimate in ("true", "max", 0, 1, 2)
    }
    mean = float(np.mean([0, 1, 2, 3, 50]))
    assert by_estimate == {"true": 2.0, "max": 2.0, 0: pytest.approx(mean), 1: 2.0, 2: 2.0}


NETWORK = networks.ring(4, poisoned=1)


@pytest.mark.parametrize("rule", [aggregators.create("mean"), aggregators.create("median")])
def test_messages_may_be_arrays_or_lists(rule):
    sent = np.random.default_rng(0).normal(size=(2, 4, 3))
    expected = rule(torch.from_numpy(sent), NETWORK)
    assert torch.equal(rule(sent, NETWORK), expected)
    assert torch.equal(rule(sent[:, ::-1], NETWORK), rule(sent[:, ::-1].copy(), NETWORK))
    assert torch.allclose(rule(sent.tolist(), NETWORK), expected.float())
    assert torch.equal(rule(sent[:0], NETWORK), expected[:0])
    assert rule.at([[1, 2], [3, 4], [5, 6]]).tolist() == [3, 4]
    assert torch.equal(rule.at(sent[0]), rule.at(torch.from_numpy(sent[0])))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (torch.zeros(4, 0), r"with D from 1, found torch.float32 of shape \[4, 0\]"),
        (torch.zeros(4, 3).to_sparse(), "expected a dense tensor, found torch.sparse_coo"),
        (torch.zeros(4, 3, device="meta"), "expected a dense tensor, found a meta tensor"),
        (torch.zeros(4, 3, dtype=torch.int64), "expected floating point .* found torch.int64"),
        (np.zeros((4, 3), dtype=complex), "expected floating point .* found torch.complex128"),
        (np.array(1.0), r"found torch.float64 of shape \[\]"),
        ("hello", "expected a tensor, an array or lists of numbers, found str"),
        ([[1.0], [2.0, 3.0]], "expected a tensor, an array or lists of numbers, found list"),
        (None, "expected a tensor, an array or lists of numbers, found NoneType"),
    ],
)
def test_what_is_no_message_is_refused_by_its_argument(found, told):
    rule = aggregators.create("mean")
    with pytest.raises(BezoarError, match=f"messages: .*{told}"):
        rule(found, NETWORK)
    with pytest.raises(BezoarError, match=f"inputs: .*{told}"):
        rule.at(found)


@pytest.mark.parametrize("network", ["fan", None])
def test_what_is_no_network_is_refused(network):
    with pytest.raises(BezoarError, match="network: expected a Network or a networkx graph, found"):
        aggregators.create("mean")(torch.zeros(4, 3), network)


def test_no_runs_on_an_impossible_network_are_refused_like_any():
    with pytest.raises(BezoarError, match="impossible at agent"):
        aggregators.create("trimmed_mean")(np.zeros((0, 5, 3)), networks.ring(5, {1, 3}))
