import time
from concurrent.futures import ThreadPoolExecutor
from math import prod, sqrt

import numpy as np
import pytest
import torch
from torch import nn

from bezoar import BezoarError, models

OPTIONS = [
    ("mlp", {"width": 64}),
    ("cnn", {"width": 8, "hidden": 64}),
    ("resnet18", {"width": 8}),
    ("resnet34", {"width": 8, "norm": "group"}),
]


def same(first, second):
    return all(
        torch.equal(one, other)
        for one, other in zip(
            first.state_dict().values(), second.state_dict().values(), strict=True
        )
    )


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_parameters_are_a_function_of_the_seed(name, options):
    one = models.create(name, (3, 16, 16), 10, seed=5, **options)
    torch.rand(3)  # whatever anybody else draws
    assert same(one, models.create(name, (3, 16, 16), 10, seed=5, **options))
    assert not same(one, models.create(name, (3, 16, 16), 10, seed=6, **options))
    with torch.no_grad():
        for tensor in one.state_dict().values():
            tensor.fill_(9)
    models.initialise(one, 5)
    assert same(one, models.create(name, (3, 16, 16), 10, seed=5, **options))


def test_nothing_global_is_drawn_from():
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    models.create("resnet18", (3, 32, 32), 10, width=4)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()  # noqa: NPY002


def slow_module():
    """A module that is not done at once, as large ones are not."""
    first = nn.Linear(3, 3)
    time.sleep(0.005)
    return nn.Sequential(first, nn.Linear(3, 3))


def test_threads_do_not_draw_each_others_numbers():
    alone = [models.make(slow_module, seed) for seed in range(12)]
    before = torch.get_rng_state()
    with ThreadPoolExecutor(4) as threads:
        together = threads.map(lambda seed: models.make(slow_module, seed), range(12))
        assert all(same(*pair) for pair in zip(alone, together, strict=True))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_weights_fill_their_range_and_normalisations_do_nothing(name, options):
    module = models.create(name, (3, 16, 16), 10, **options)
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            bound = 1 / sqrt(prod(layer.weight.shape[1:]))
            for parameter in layer.parameters():
                assert parameter.abs().max() <= bound
                # The mean of n uniform numbers has standard deviation bound / √(3 n).
                assert abs(parameter.mean()) < 6 * bound / sqrt(3 * parameter.numel())
            assert layer.weight.abs().max() > 0.9 * bound
        elif isinstance(layer, nn.BatchNorm2d | nn.GroupNorm):
            assert (layer.weight == 1).all()
            assert (layer.bias == 0).all()
        if isinstance(layer, nn.BatchNorm2d):
            assert (layer.running_mean == 0).all()
            assert (layer.running_var == 1).all()
            assert layer.num_batches_tracked == 0


def test_layers_differ_from_each_other():
    module = models.create("mlp", (64,), 64, width=64, depth=2)
    first, second = (layer.weight for layer in module.hidden)
    assert not torch.equal(first, second)


def test_single_precision_is_double_precision_rounded():
    one, other = (models.create("mlp", (9,), 3, width=5) for _ in range(2))
    other.double()
    models.initialise(other, 0)
    assert same(one, other.float())


class Scale(nn.Module):
    """A layer that torch does not know."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((3,), 7.0))


class DrawnScale(Scale):
    def initialise(self, rng):
        with torch.no_grad():
            self.scale.copy_(torch.from_numpy(rng.uniform(2, 3, size=3)))


class Own(nn.Module):
    """A module that begins in its own way."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(4))
        self.output = nn.Linear(4, 2)
        nn.init.zeros_(self.output.weight)


def test_a_module_that_begins_in_its_own_way_keeps_it():
    before = torch.get_rng_state()
    one, again, other = (models.make(Own, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert same(one, again)
    assert not torch.equal(one.scale, other.scale)
    assert not one.output.weight.any()


def test_a_seeded_module_does_not_depend_on_torchs_generator():
    def disturbed():
        torch.rand(3)
        return models.MLP((9,), 3, width=5)

    made = models.make(disturbed, 4)
    assert same(made, models.create("mlp", (9,), 3, seed=4, width=5))
    with torch.random.fork_rng():
        by_hand = disturbed()
    models.initialise(by_hand, 4)
    assert same(made, by_hand)


def test_a_layer_of_ones_own_says_how_it_begins():
    module = nn.Sequential(nn.Linear(3, 3), DrawnScale())
    models.initialise(module, 1)
    assert ((module[1].scale >= 2) & (module[1].scale <= 3)).all()
    with pytest.raises(BezoarError, match=r"model: 1.0 is a Scale, .* method initialise\(rng\)"):
        models.initialise(nn.Sequential(nn.ReLU(), nn.Sequential(Scale())), 1)
    with pytest.raises(BezoarError, match="model: it is a Scale"):
        models.initialise(Scale(), 1)
