import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from bezoar.experiments import RunSpec, run, run_all
from bezoar.experiments._running import plan


@given(
    runs=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=30),
    memory=st.integers(1, 120),
)
def test_a_plan_keeps_every_run_and_its_bounds(runs, memory):
    keys, sizes = [key for key, _ in runs], [size for _, size in runs]
    groups = plan(keys, sizes, memory)
    assert sorted(place for group in groups for place in group) == list(range(len(runs)))
    for group in groups:
        assert len({keys[place] for place in group}) == 1
        assert len(group) == 1 or sum(sizes[place] for place in group) <= memory
    if sum(sizes) <= memory:  # everything that can be together is
        assert len(groups) == len(set(keys))


def small(**fields):
    return RunSpec.read({"iterations": 2, "every": 1, "metrics": ["accuracy"], **fields})


def test_runs_of_different_sizes_lengths_and_partitions_in_one_call():
    specs = [
        small(network="fan", aggregator="ios"),
        small(network="ring:agents=6", aggregator="faba"),
        small(network="fan", aggregator="mean", iterations=3),
        small(network="fan", aggregator="trimmed_mean", partition="by_class"),
        small(network="fan", aggregator="krum"),
    ]
    calls = []
    histories = run_all(specs, workers=1, progress=lambda *call: calls.append(call[:2]))
    assert [len(history.models) for history in histories] == [10, 6, 10, 10, 10]
    assert [history.iterations[-1] for history in histories] == [2, 2, 3, 2, 2]
    assert calls == [(done, 9) for done in range(1, 10)]  # four groups: 2 + 2 + 3 + 2 steps
    for place in (0, 4):
        alone = run(specs[place])
        assert torch.allclose(alone.models, histories[place].models, atol=1e-6)
        assert np.allclose(alone["accuracy"], histories[place]["accuracy"], atol=1e-3)
