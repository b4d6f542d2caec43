"""The paper's setting on the whole of MNIST, against figures of a separate prototype."""

import pytest

from bezoar.experiments import RunSpec, run_all

#: Accuracy after 100 iterations of 0.1/√k from zero, by class, one agent of ten poisoned.
EXPECTED = {
    ("two_castle", "weighted_mean", None): 0.765,
    ("two_castle", "ios", None): 0.661,
    ("two_castle", "trimmed_mean", None): 0.640,
    ("two_castle", "weighted_mean", ()): 0.865,
    ("line", "weighted_mean", None): 0.615,
    ("line", "ios", None): 0.089,
}


def test_accuracies_after_100_iterations():
    specs = [
        RunSpec.read(
            {
                "network": network,
                "aggregator": rule,
                "poisoned": poisoned,
                "partition": "by_class",
                "iterations": 100,
                "every": 100,
                "metrics": ["accuracy"],
            }
        )
        for network, rule, poisoned in EXPECTED
    ]
    for setting, history in zip(EXPECTED, run_all(specs, workers=1), strict=True):
        assert history["accuracy"][-1] == pytest.approx(EXPECTED[setting], abs=0.01), setting
