from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bezoar import BezoarError, models
from bezoar._options import read_options


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "classes", "expected"),
    [
        ("resnet18", (3, 32, 32), 100, 11_220_132),
        ("resnet18", (3, 64, 64), 100, 11_220_132),
        ("resnet34", (3, 64, 64), 200, 21_379_592),
        ("cnn", (1, 28, 28), 10, 1_663_370),  # as McMahan et al. say
        ("mlp", (1, 28, 28), 10, 199_210),  # as McMahan et al. say
        ("mlp", (784,), 10, 199_210),
    ],
)
def test_the_number_of_parameters(name, shape, classes, expected):
    assert count(models.create(name, shape, classes)) == expected


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_normalisations_have_as_many_parameters(norm):
    assert count(models.create("resnet18", (3, 32, 32), 10, width=8, norm=norm)) == count(
        models.create("resnet18", (3, 32, 32), 10, width=8)
    )


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("resnet18", (3, 32, 32), {"width": 4}),
        ("resnet18", (3, 64, 64), {"width": 4}),
        ("resnet18", (1, 28, 28), {"width": 4, "norm": "group"}),
        ("resnet18", (3, 32, 48), {"width": 3, "norm": "group"}),
        ("resnet34", (3, 64, 64), {"width": 4}),
        ("resnet34", (4, 9, 7), {"width": 4, "norm": "group"}),
        ("cnn", (1, 28, 28), {"width": 4, "hidden": 16}),
        ("cnn", (3, 33, 64), {"width": 4, "hidden": 16}),
        ("mlp", (3, 5, 7), {"width": 6, "depth": 3}),
        ("mlp", (11,), {"depth": 0}),
    ],
)
def test_scores_and_gradients(name, shape, options):
    module = models.create(name, shape, 7, **options)
    samples = torch.randn(5, *shape, generator=torch.Generator().manual_seed(0))
    scores = module(samples)
    assert scores.shape == (5, 7)
    F.cross_entropy(scores, torch.arange(5)).backward()
    for label, parameter in module.named_parameters():
        assert parameter.grad is not None, label
        assert parameter.grad.isfinite().all(), label
        assert parameter.grad.abs().max() > 0, f"{label} plays no part"


def batch_norm(values, weight, bias):
    mean = values.mean((0, 2, 3), keepdim=True)
    variance = ((values - mean) ** 2).mean((0, 2, 3), keepdim=True)
    normal = (values - mean) / torch.sqrt(variance + 1e-5)
    return normal * weight[:, None, None] + bias[:, None, None]


def plain_resnet(state, blocks, images):
    """A residual network written out from its parameters, in training mode."""

    def norm(values, name):
        return batch_norm(values, state[f"{name}.weight"], state[f"{name}.bias"])

    hidden = F.conv2d(images, state["stem.weight"], padding=1)
    hidden = norm(hidden, "stem_norm").clamp(min=0)
    place = 0
    for stage, number in enumerate(blocks):
        for block in range(number):
            name, stride = f"blocks.{place}", 2 if stage > 0 and block == 0 else 1
            inner = F.conv2d(hidden, state[f"{name}.conv1.weight"], stride=stride, padding=1)
            inner = norm(inner, f"{name}.norm1").clamp(min=0)
            inner = F.conv2d(inner, state[f"{name}.conv2.weight"], padding=1)
            inner = norm(inner, f"{name}.norm2")
            if stride == 2:
                hidden = F.conv2d(hidden, state[f"{name}.shortcut.0.weight"], stride=2)
                hidden = norm(hidden, f"{name}.shortcut.1")
            hidden = (inner + hidden).clamp(min=0)
            place += 1
    return hidden.mean((2, 3)) @ state["output.weight"].T + state["output.bias"]


@pytest.mark.parametrize(
    ("name", "blocks"), [("resnet18", (2, 2, 2, 2)), ("resnet34", (3, 4, 6, 3))]
)
@pytest.mark.parametrize("side", [32, 64])
def test_a_resnet_is_what_it_is_written_out(name, blocks, side):
    module = models.create(name, (3, side, side), 10, seed=3, width=4).double()
    images = torch.randn(4, 3, side, side, generator=torch.Generator().manual_seed(1)).double()
    expected = plain_resnet(module.state_dict(), blocks, images)
    torch.testing.assert_close(module(images), expected, rtol=1e-9, atol=1e-9)


def test_a_cnn_is_what_it_is_written_out():
    module = models.create("cnn", (3, 20, 12), 5, width=3, hidden=9).double()
    state = module.state_dict()
    images = torch.randn(4, 3, 20, 12, generator=torch.Generator().manual_seed(1)).double()
    values = images
    for name in ("conv1", "conv2"):
        values = F.conv2d(values, state[f"{name}.weight"], state[f"{name}.bias"], padding=2)
        values = values.clamp(min=0).unfold(2, 2, 2).unfold(3, 2, 2).amax((-2, -1))
    values = (values.flatten(1) @ state["hidden.weight"].T + state["hidden.bias"]).clamp(min=0)
    expected = values @ state["output.weight"].T + state["output.bias"]
    torch.testing.assert_close(module(images), expected, rtol=1e-9, atol=1e-9)


def test_an_mlp_is_what_it_is_written_out():
    module = models.create("mlp", (2, 3, 4), 5, width=7, depth=2).double()
    state = module.state_dict()
    values = samples = torch.randn(6, 2, 3, 4, generator=torch.Generator().manual_seed(1)).double()
    values = values.reshape(6, 24)
    for name in ("hidden.0", "hidden.1"):
        values = (values @ state[f"{name}.weight"].T + state[f"{name}.bias"]).clamp(min=0)
    expected = values @ state["output.weight"].T + state["output.bias"]
    torch.testing.assert_close(module(samples), expected, rtol=1e-9, atol=1e-9)


def test_group_normalisation_treats_every_image_alone():
    module = models.create("resnet18", (3, 32, 32), 10, width=16, norm="group").double()
    images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0)).double()
    alone = torch.cat([module(image[None]) for image in images])
    torch.testing.assert_close(module(images), alone, rtol=1e-9, atol=1e-9)
    assert list(module.buffers()) == []


@pytest.mark.parametrize(("width", "groups"), [(64, 4), (16, 1), (24, 1), (48, 3), (3, 1)])
def test_about_sixteen_channels_share_a_group(width, groups):
    module = models.create("resnet18", (3, 8, 8), 2, width=width, norm="group")
    assert module.stem_norm.num_groups == groups


@pytest.mark.parametrize(
    ("name", "shape", "options", "message"),
    [
        ("resnet", (3, 32, 32), {}, "model: 'resnet' is not known; allowed: resnet"),
        ("resnet18", (784,), {}, r"image_shape: this model needs images .* shape \[784\]"),
        ("cnn", (1, 3, 9), {}, "image_shape: this model needs 4 × 4 pixels, found 3 × 9"),
        ("resnet18", (3, 32, 32), {"norm": "layer"}, "norm: 'layer' is not known; allowed: batch"),
        (
            "resnet18",
            (3, 32, 32),
            {"width": 0},
            "width: expected an integer of at least 1, found 0",
        ),
        ("mlp", (9,), {"width": 1.5}, "width: expected an integer, found 1.5"),
        ("mlp", (9,), {"depth": -1}, "depth: expected an integer of at least 0, found -1"),
        ("mlp", (9,), {"deep": 1}, "model mlp: no option 'deep'; allowed: depth"),
    ],
)
def test_what_cannot_be_made_is_refused(name, shape, options, message):
    with pytest.raises(BezoarError, match=message):
        models.create(name, shape, 10, **options)


class Maker:
    """Makes modules when it is called."""

    def __call__(self, shape: tuple[int, ...], classes: int, width: "int" = 3) -> nn.Module:
        return models.MLP(shape, classes, width)


@pytest.mark.parametrize("make", [partial(models.MLP, width=3), Maker(), Maker().__call__])
def test_whatever_makes_modules_is_a_model(make):
    found = models.network_model(make)
    assert found().module((5,), 2).output.in_features == 3
    assert read_options(found, {"width": "7"}, as_text=True)["width"] == 7
    assert found(width=7).module((5,), 2).output.in_features == 7


def test_a_module_is_no_model():
    with pytest.raises(BezoarError, match=r"model: expected what makes a module.* found a MLP"):
        models.network_model(models.MLP((5,), 2))


def test_real_images_are_learned(small_mnist):
    """A step against the gradient of a small network lowers its loss on real digits."""
    images = torch.from_numpy(small_mnist.train.astype(np.float32)) / 127.5 - 1
    labels = torch.from_numpy(small_mnist.train_labels)
    for name in ("mlp", "cnn", "resnet18"):
        module = models.create(name, small_mnist.sample_shape, 10, width=4)
        loss = F.cross_entropy(module(images), labels)
        loss.backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter -= 0.01 * parameter.grad
        assert F.cross_entropy(module(images), labels) < loss


class Own(nn.Module):
    """A network of a user's own, with its layers in no special order."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)


def test_the_output_layer():
    for name in ("mlp", "cnn", "resnet18", "resnet34"):
        module = models.create(name, (3, 8, 8), 7, width=4)
        found, layer = models.output_layer(module)
        assert (found, layer) == ("output", module.output)
        assert layer.out_features == 7
    first = Own(output=nn.Linear(4, 2), body=nn.Linear(3, 4))
    assert models.output_layer(first) == ("output", first.output)
    last = Own(body=nn.Linear(3, 4), head=nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))
    assert models.output_layer(last) == ("head.1", last.head[1])
    odd = Own(output=nn.Sequential(nn.Linear(4, 2)), tail=nn.ReLU())
    assert models.output_layer(odd) == ("output.0", odd.output[0])
    assert models.output_layer(Own(body=nn.Conv2d(1, 1, 1))) is None
