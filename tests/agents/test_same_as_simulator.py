"""Agents that hear each other over TLS end in the bits of the simulator.

On a sparse network the simulator computes every neighbourhood on its own, as an agent does. On a
dense one it computes all of them by one matrix product, which adds up in another order: models
differ by rounding.
"""

import numpy as np
import pytest
import torch
from several import train

from bezoar import aggregators
from bezoar.experiments import RunSpec, network_of, run_all

RING = {"name": "ring", "agents": 6, "poisoned": 1}

pytestmark = pytest.mark.usefixtures("tiny_mnist_throughout")


@pytest.fixture
def simulated_sparsely(monkeypatch):
    """Let the simulator treat every network as a sparse one, whatever its size."""
    monkeypatch.setattr("bezoar.exchange._exchange.is_dense", lambda *_: False)


def models_of(histories, spec):
    return torch.cat([histories[name].models for name in network_of(spec).names])


def spec_of(**fields):
    return RunSpec.read({"network": RING, "iterations": 2, "every": 2, "metrics": (), **fields})


def simulate(spec):
    [history] = run_all([spec], workers=1)  # with one worker agents are computed side by side
    return history


#: FoolsGold goes by what a neighbour changed in all iterations, which agents apart do not keep.
RULES = [rule for rule in aggregators.AGGREGATORS if rule != "foolsgold"]

MODELS = ["softmax", {"name": "mlp", "width": 16, "depth": 1}]


@pytest.mark.parametrize("model", MODELS, ids=["softmax", "mlp"])
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_the_bits_of_a_sparse_network(tmp_path, simulated_sparsely, rule, model):
    rule += ":estimate=up_to_1" if rule == "bulyan" else ""  # each has three inputs
    spec = spec_of(aggregator=rule, model=model)
    found = models_of(train(spec, tmp_path), spec)
    assert torch.equal(found, simulate(spec).models)


@pytest.mark.parametrize(
    "fields",
    [
        {"attack": "dynamic_label_flip"},
        {"attack": "random_labels", "dtype": "float64"},
        {"attack": "sign_flip"},
        {"batch": 8, "optimizer": "momentum", "local_steps": 2, "weight_decay": 0.01},
        {"partition": "dirichlet:alpha=0.5", "aggregator": "centered_clipping:memory=true"},
        {"model": "cnn:width=2,hidden=8", "augment": True},
        {"algorithm": "combine_then_adapt", "attack": "sign_flip", "optimizer": "momentum"},
    ],
    ids=str,
)
def test_every_variant_has_the_bits_of_a_sparse_network(tmp_path, simulated_sparsely, fields):
    spec = spec_of(**{"aggregator": "ios", **fields})
    found = models_of(train(spec, tmp_path), spec)
    assert torch.equal(found, simulate(spec).models)


def test_a_network_that_is_sparse_by_itself(tmp_path):
    network = {"name": "ring", "agents": 49, "poisoned": 2}
    spec = spec_of(network=network, aggregator="ios", agent_metrics=True)
    histories = train(spec, tmp_path)
    simulated = simulate(spec)
    assert torch.equal(models_of(histories, spec), simulated.models)
    for name, values in simulated.agents.items():
        found = [history.agents[name][-1, 0] for history in histories.values()]
        order = np.argsort([int(agent) for agent in histories])
        np.testing.assert_allclose(np.array(found)[order], values[-1], atol=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=["softmax", "mlp"])
@pytest.mark.parametrize("rule", RULES)
def test_on_a_dense_network_models_differ_by_rounding(tmp_path, rule, model):
    network = {"name": "complete", "agents": 5, "poisoned": 1}
    rule += ":estimate=0" if rule == "bulyan" else ""  # each has five inputs
    spec = spec_of(network=network, aggregator=rule, model=model)
    found = models_of(train(spec, tmp_path), spec)
    torch.testing.assert_close(found, simulate(spec).models, rtol=1e-5, atol=1e-5)
