"""Whichever way a run is computed, for every rule and every attack, one step is right.

What differs between two ways is how numbers are rounded: sums over samples, pixels and inputs are
taken in another order. From the same models, a score is a sum of terms ``w_j x_j`` with pixels
``|x_j| ≤ 1``, so it is off by roundings of ``‖w‖₁``. A step adds to the model ``γ`` times means of
numbers of size one, each off by as much as the score; aggregation averages. So a step is promised
to be within ``ROUNDINGS`` roundings of the size ``|w| + γ (1 + ‖w‖₁)`` of what a plain loop in
float64 makes of the same models. Over many steps such differences grow or shrink as the objective
has it (steps ``γ`` beyond ``2/L`` multiply them), which is no matter of how a step is computed.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_loop import Loop
from test_against_plain_loop import TOLERANCE, made_runs

from bezoar import training
from bezoar.exchange import Tuning
from bezoar.models import SoftmaxRegression

#: How many roundings a step may be off. Where this was measured none was off by more than 10.
ROUNDINGS = 64

ITERATIONS = 2

ROUNDING = {"float32": 2.0**-24, "float64": 2.0**-53}


@pytest.fixture(scope="module", params=ROUNDING)
def judged(request, problem):
    """A setting, every rule under every attack on it, and what a plain loop makes of each step."""
    shared = problem(dtype=request.param, iterations=ITERATIONS, every=ITERATIONS, metrics=())
    runs = made_runs()
    return shared, runs, [judge(shared, run) for run in runs]


@pytest.fixture(scope="module")
def side_by_side(judged):
    """What the engine makes of all runs together, agent by agent."""
    shared, runs, judgements = judged
    return steps_of(replace(shared, batches=False), runs, judgements)


def judge(shared, run):
    """``(before, after)`` of every step, models ``[agents, D]`` that the type can hold."""
    loop = Loop(shared, run)
    steps = []
    for iteration in range(1, ITERATIONS + 1):
        before = np.stack([loop.vector(model) for model in loop.models])
        before = before.astype(shared.dtype).astype(np.float64)
        loop.models = [loop.matrix(vector) for vector in before]
        loop.step(iteration)
        steps.append((before, np.stack([loop.vector(model) for model in loop.models])))
    return steps


def steps_of(shared, runs, judgements, workers=2):
    """``[runs, iterations, agents, D]`` what the engine makes of each step's models."""
    found = []
    with training.Workers(workers) as pool:
        engine = shared.engine(runs, pool)
        for place in range(ITERATIONS):
            state = engine.start()
            before = np.stack([steps[place][0] for steps in judgements])
            vectors = torch.from_numpy(before).to(state.models.dtype)
            models = engine.task.model.unflatten(vectors)
            after = engine.step(training.State(place, {"models": models}))
            found.append(engine.task.vectors(after.models).double().numpy())
    return np.stack(found, axis=1)


def agree(shared, runs, judgements, found):
    for run, steps, made in zip(runs, judgements, found, strict=True):
        for place, (before, expected) in enumerate(steps):
            step = run.schedule(place + 1, ITERATIONS)
            size = np.abs(before).max() + step * (1 + longest_row(shared, before))
            allowed = ROUNDINGS * ROUNDING[shared.dtype] * size
            allowed += TOLERANCE.get(run.aggregator.name, 0) * size
            off = np.abs(made[place] - expected).max()
            assert off <= allowed, (run.aggregator.name, run.attack.name, place, off / allowed)


def longest_row(shared, models):
    """The largest ``‖w‖₁`` of a class's weights and bias, in models ``[agents, D]``."""
    model = SoftmaxRegression(shared.dataset.classes, shared.dataset.features)
    return float(model.unflatten(torch.from_numpy(models)).abs().sum(-1).max())


def test_side_by_side(judged, side_by_side):
    shared, runs, judgements = judged
    agree(shared, runs, judgements, side_by_side)


def test_alone(judged):
    shared, runs, judgements = judged
    found = [
        steps_of(shared, [run], [steps])[0] for run, steps in zip(runs, judgements, strict=True)
    ]
    agree(shared, runs, judgements, found)


def test_with_one_worker(judged, side_by_side):
    shared, runs, judgements = judged
    one = steps_of(replace(shared, batches=False), runs, judgements, workers=1)
    assert np.array_equal(one, side_by_side)


@pytest.mark.parametrize(
    "tuning",
    [
        Tuning(dense_advantage=0),
        Tuning(dense_advantage=0, piece_bytes=1 << 18, block_bytes=1 << 16),
        Tuning(block_bytes=1 << 16, columns=1_000),
    ],
    ids=["gathered", "gathered in small pieces", "in small blocks"],
)
def test_exchanges_computed_in_other_ways(judged, tuning):
    shared, runs, judgements = judged
    other = replace(shared, tuning=tuning)
    agree(shared, runs, judgements, steps_of(other, runs, judgements))


def test_agents_in_batches(judged):
    shared, runs, judgements = judged
    other = replace(shared, batches=True)
    agree(shared, runs, judgements, steps_of(other, runs, judgements))
