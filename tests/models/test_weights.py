import pytest
import torch
from safetensors.torch import save_file

from bezoar import BezoarError, models


def made(classes=10, seed=0, **options):
    return models.create("resnet18", (3, 16, 16), classes, seed=seed, **{"width": 4, **options})


def state(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def test_everything_is_taken(tmp_path):
    given, taker = made(seed=1), made(seed=2)
    given(torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0)))  # statistics
    save_file(given.state_dict(), tmp_path / "w.safetensors")
    models.load_weights(tmp_path / "w.safetensors", taker)
    for name, tensor in given.state_dict().items():
        assert torch.equal(taker.state_dict()[name], tensor), name
    assert taker.stem_norm.num_batches_tracked == 1


@pytest.mark.parametrize("classes", [10, 7])
def test_a_new_output_layer_keeps_what_it_has(tmp_path, classes):
    given, taker = made(seed=1), made(classes, seed=2)
    save_file(given.state_dict(), tmp_path / "w.safetensors")
    before = state(taker)
    models.load_weights(str(tmp_path / "w.safetensors"), taker, new_output_layer=True)
    for name, tensor in taker.state_dict().items():
        expected = before[name] if name.startswith("output.") else given.state_dict()[name]
        assert torch.equal(tensor, expected), name


def test_a_file_need_not_have_an_output_layer_that_is_new(tmp_path):
    body = {k: v for k, v in made(seed=1).state_dict().items() if not k.startswith("output.")}
    save_file(body, tmp_path / "w.safetensors")
    models.load_weights(tmp_path / "w.safetensors", made(), new_output_layer=True)
    with pytest.raises(BezoarError, match=r"missing: output.weight, output.bias"):
        models.load_weights(tmp_path / "w.safetensors", made())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("stem.weight"), r"does not fit the model; missing: stem.weight$"),
        (lambda w: w.update(extra=torch.zeros(1)), r"does not fit the model; unexpected: extra$"),
        (
            lambda w: w["output.bias"].fill_(torch.nan),
            r"does not fit the model; not finite: output.bias$",
        ),
        (
            lambda w: w.update({"output.bias": torch.zeros(100)}),
            r"does not fit the model; misshapen: output.bias \[100\] instead of \[10\]$",
        ),
        (
            lambda w: (w.pop("stem.weight"), w.update(extra=torch.zeros(1))),
            r"missing: stem.weight; unexpected: extra$",
        ),
        (
            lambda w: [w.pop(name) for name in list(w) if "conv1" in name],
            r"missing: blocks.0.conv1.weight, .*, … \(8 in all\)$",
        ),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_taken(tmp_path, change, message):
    weights, taker = state(made(seed=1)), made(seed=2)
    before = state(taker)
    change(weights)
    save_file(weights, tmp_path / "w.safetensors")
    with pytest.raises(BezoarError, match=message):
        models.load_weights(tmp_path / "w.safetensors", taker)
    assert all(torch.equal(before[name], now) for name, now in taker.state_dict().items())


def test_a_model_may_be_an_output_layer_alone():
    layer = torch.nn.Linear(3, 2)
    before, given = state(layer), state(torch.nn.Linear(3, 4))
    models.set_weights(layer, given, new_output_layer=True)
    assert all(torch.equal(before[name], now) for name, now in layer.state_dict().items())


def test_a_model_without_an_output_layer_has_no_new_one():
    module = torch.nn.Conv2d(1, 1, 1)
    models.set_weights(module, module.state_dict())
    with pytest.raises(BezoarError, match="expected a linear layer that gives the scores"):
        models.set_weights(module, module.state_dict(), new_output_layer=True)


@pytest.mark.parametrize("content", [b"", b"not safetensors", b"\xff" * 64])
def test_a_file_that_is_no_safetensors_is_refused(tmp_path, content):
    (tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(BezoarError, match=r"weights: .*w.safetensors cannot be read"):
        models.load_weights(tmp_path / "w.safetensors", made())


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BezoarError, match=r"weights: .*w.safetensors cannot be read"):
        models.load_weights(tmp_path / "w.safetensors", made())
