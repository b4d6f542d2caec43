"""The golden values, made by a separate literal implementation."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from aggregator_inputs import PATHS, exchanged

from bezoar import Network, aggregators, networks

CASES = json.loads((Path(__file__).parents[1] / "golden" / "aggregators.json").read_text())

NAMED = {
    "two_castle(5)": lambda: networks.two_castle(10),
    "two_castle(5), two poisoned": lambda: networks.two_castle(10, poisoned=2),
    "line(10)": lambda: networks.line(10),
    "fan(9, 1)": lambda: networks.fan(10),
    "lower_bound(4, 4)": lambda: networks.lower_bound(regular=4, poisoned=4),
}

#: What the file calls a rule, its name here and the options with which it was made.
RULES = {
    "weighted_mean": ("weighted_mean", {}),
    "trimmed_mean": ("trimmed_mean", {}),
    "faba": ("faba", {}),
    "ios": ("ios", {}),
    "ios_equal_weight": ("ios", {"mixing": "equal"}),
    "centered_clipping": ("centered_clipping", {"threshold": None}),
    "centered_clipping_3_steps": ("centered_clipping", {"threshold": None, "steps": 3}),
    "clipped_gossip": ("clipped_gossip", {"threshold": None}),
    "rfa": ("rfa", {}),
    "lfighter": ("lfighter", {"head": None}),
}

each_case = pytest.mark.parametrize(
    "case", CASES, ids=[f"{case['network']}-{case['seed']}" for case in CASES]
)
each_rule = pytest.mark.parametrize("rule", RULES)


def network_of(case):
    graph = nx.Graph(map(tuple, case["edges"]))
    return Network(graph, case["poisoned"])


def make(rule, case):
    name, options = RULES[rule]
    options = dict(options)
    if "threshold" in options:
        options["threshold"] = case["threshold"]
    if "head" in options:
        options["head"] = (case["head_classes"], case["head_features"])
    return aggregators.create(name, **options)


def assert_golden(found, case, rule):
    scale = np.abs(case["messages"]).max()
    tolerance = 1e-5 if rule == "rfa" else 1e-9
    error = np.abs(found.numpy() - np.array(case["expected"][rule])).max()
    assert error <= tolerance * scale


def messages_of(case):
    return torch.tensor(case["messages"], dtype=torch.float64)


def test_every_rule_of_the_file_is_checked():
    assert {rule for case in CASES for rule in case["expected"]} == set(RULES)


@each_rule
@each_case
def test_golden_values(case, rule):
    for constants in PATHS.values():
        found, _ = exchanged(make(rule, case), messages_of(case), network_of(case), constants)
        assert_golden(found, case, rule)


@pytest.mark.parametrize("where", PATHS)
@each_rule
def test_golden_values_stacked_into_one_batch(rule, where):
    # A threshold is one number for all runs: such rules stack each case with itself and with
    # another one, whose outcome is then not the golden one.
    own_threshold = "threshold" in RULES[rule][1]
    for agents in sorted({case["agents"] for case in CASES}):
        group = [case for case in CASES if case["agents"] == agents]
        for case in group if own_threshold else group[:1]:
            stack = [case, case, group[1], case] if own_threshold else group
            messages = torch.stack([messages_of(other) for other in stack])
            nets = [network_of(other) for other in stack]
            found, _ = exchanged(make(rule, case), messages, nets, PATHS[where])
            for got, expected in zip(found, stack, strict=True):
                if expected is case or not own_threshold:
                    assert_golden(got, expected, rule)


@pytest.mark.parametrize("name", NAMED)
def test_named_networks_have_the_golden_edges(name):
    found = NAMED[name]()
    for case in CASES:
        if case["network"] == name:
            assert found.agents == case["agents"]
            assert [list(edge) for edge in found.edges] == sorted(
                sorted(edge) for edge in case["edges"]
            )
            assert list(found.poisoned) == case["poisoned"]


def test_every_named_network_is_in_the_file():
    assert set(NAMED) == {case["network"] for case in CASES} - {"random(12)"}
