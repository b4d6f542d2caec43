"""Runs of neural networks as documents: what is not given, where they start, what is kept."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sweep_runs import Notes, contents, sweep
from sweep_server import as_images
from torch import nn

from bezoar import BezoarError, data, models, run
from bezoar.experiments import RunSpec, Store, make_plan, prepare, run_all, run_key
from bezoar.training import OneCycle
from bezoar.training._batches import Batches

#: A network that trains in milliseconds, with batch norm, on real digits.
FIELDS = {
    "dataset": "digits",
    "model": "resnet18:width=2",
    "network": "ring:agents=4",
    "iterations": 3,
    "every": 2,
    "batch": 4,
    "metrics": ["accuracy", "consensus_error"],
}

PRETRAINED = {"name": "pretrained", "epochs": 1, "batch": 16, "step": 0.05}


@pytest.fixture(autouse=True)
def digits(small_mnist, monkeypatch):
    """Small images of real digits."""
    made = as_images(small_mnist, "digits")
    monkeypatch.setitem(data.DATASETS, "digits", lambda: made)
    return made


def spec(**fields):
    return RunSpec.read(FIELDS | fields)


def state_dict(history, agent=0, **fields):
    """An agent's final model, by the names of its tensors."""
    prepared = prepare(spec(**fields))
    module = prepared.module()
    module.load_state_dict(dict(prepared.average_model(history)))
    return module.state_dict()


def test_what_is_not_given_depends_on_the_model_and_is_written_out():
    network, softmax = spec(batch=None).document(), spec(model="softmax", batch=None).document()
    found = [(d["batch"], d["gradient_samples"], d["start"]) for d in (network, softmax)]
    assert found == [(32, 256, "random"), (None, None, "zero")]
    assert RunSpec.read(network) == RunSpec.recall(network) == spec(batch=None)
    keys = {run_key(spec(batch=batch)) for batch in (None, 32)}
    assert len(keys | {run_key(spec(start="random", batch=32))}) == 1


def test_a_field_beside_a_spec_takes_the_defaults_of_the_new_model():
    of_softmax = RunSpec.read({"dataset": "digits", "iterations": 0, "network": "ring:agents=4"})
    history = run(of_softmax, model="resnet18:width=2", metrics=["accuracy"])
    assert history.models.abs().max() > 0  # not the zeros that softmax regression starts at


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "softmax", "augment": True}, "augment: softmax regression does not use it"),
        ({"model": "softmax", "accumulate": 2}, "accumulate: softmax regression does not use it"),
        ({"model": "softmax", "gradient_samples": 5}, "gradient_samples: softmax regression"),
        ({"model": "softmax", "batch": None, "order": "consecutive"}, "order: 'consecutive' is an"),
        ({"accumulate": 3}, "accumulate: a batch of 4 cannot be cut into 3 equal parts"),
        ({"model": "resnet19"}, "model: 'resnet19' is not known; allowed: resnet18, resnet34"),
        ({"model": "resnet18:wide=3"}, "model resnet18: no option 'wide'; allowed: width, norm"),
        ({"start": "nowhere.safetensors"}, "cannot read nowhere.safetensors"),
        ({"start": "pretrained:epochs=0"}, "start pretrained: epochs: expected a number of at"),
        ({"batch": 0}, "batch: expected a number of at least 1, found 0"),
    ],
)
def test_refusals(fields, message):
    with pytest.raises(BezoarError) as refused:
        run_key(prepare(spec(**fields)).spec)
    assert message in str(refused.value)


def test_every_field_of_a_network_changes_the_name_of_a_run():
    changed = [
        {"model": "resnet18:width=3"},
        {"model": "resnet18:width=2,norm=group"},
        {"batch": 8},
        {"order": "consecutive"},
        {"augment": True},
        {"local_steps": 2},
        {"accumulate": 2},
        {"gradient_samples": 5},
        {"start": "zero"},
        {"start": PRETRAINED},
        {"start": PRETRAINED | {"epochs": 2}},
        {"start": PRETRAINED | {"new_output": False}},
    ]
    assert len({run_key(spec(**fields)) for fields in [{}, *changed]}) == 1 + len(changed)


def test_softmax_regression_is_the_network_of_one_layer(digits):
    """Batches, momentum, weight decay, local steps and a random start, as torch has them."""
    fields = {
        "batch": 16,
        "optimizer": "heavy_ball",
        "weight_decay": 0.01,
        "local_steps": 2,
        "start": "random",
        "partition": "dirichlet:alpha=5",
        "dtype": "float64",
    }
    softmax = run(spec(model="softmax", **fields))
    network = run(spec(model="mlp:depth=0", **fields))
    torch.testing.assert_close(softmax.models, network.models, rtol=0, atol=1e-12)
    assert softmax.models.abs().max() > 0.01


def test_a_pretrained_start_is_a_run_of_its_own_and_is_kept(tmp_path):
    store, notes = Store(tmp_path), Notes()
    wanted = [spec(start=PRETRAINED, aggregator=rule) for rule in ("ios", "mean")]
    needed = prepare(wanted[0]).needs
    assert [len(group) for group in make_plan(wanted, store).groups] == [1, 2]
    swept = sweep(wanted, store, notes)
    assert not swept.failures
    assert notes.trained[0] == [needed.key]
    trained = store.load(needed.key)
    assert trained["accuracy"][-1] > trained["accuracy"][0]
    # Nothing is computed twice, by runs that start there later either.
    before = contents(store)
    sweep([*wanted, spec(start=PRETRAINED, aggregator="faba")], store, notes)
    assert all(needed.key not in keys for keys in notes.trained[2:])
    assert before.items() <= contents(store).items()
    # Without a store the same bits come out.
    [alone, _] = run_all(wanted, workers=1)
    assert np.array_equal(alone["accuracy"], swept.runs[0]["accuracy"])


def test_pretraining_is_central_training(digits):
    """That of ``torch.optim.SGD``, in batches of which agents have a quarter each."""
    start = PRETRAINED | {"epochs": 2, "batch": 100, "beta": 0.8, "weight_decay": 0.01}
    needed = prepare(spec(model="cnn:width=2,hidden=5", start=start, dtype="float64")).needs
    [history] = run_all([needed.spec])
    module = models.create("cnn", (1, 16, 16), 10, width=2, hidden=5).double()
    optimizer = torch.optim.SGD(
        module.parameters(), lr=1, momentum=0.8, nesterov=True, weight_decay=0.01
    )
    parts, iterations = needed.partition(), 8
    batches = Batches(parts.sizes, 25)
    for k in range(1, iterations + 1):
        optimizer.param_groups[0]["lr"] = OneCycle(0.05)(k, iterations)
        taken = np.concatenate(
            [parts.samples(agent)[batches.places(0, agent, k)] for agent in range(4)]
        )
        images = torch.from_numpy(digits.train[taken] / 127.5 - 1)
        optimizer.zero_grad()
        labels = torch.from_numpy(digits.train_labels[taken])
        torch.nn.functional.cross_entropy(module(images), labels).backward()
        optimizer.step()
    assert needed.spec.iterations == iterations
    found = needed.average_model(history)
    for name, values in module.state_dict().items():
        torch.testing.assert_close(found[name], values, rtol=0, atol=1e-9)


def test_agents_start_where_pretraining_ended():
    fields = {"start": PRETRAINED | {"new_output": False}, "iterations": 0}
    [trained] = run_all([prepare(spec(**fields)).needs.spec], workers=1)
    [started] = run_all([spec(**fields)], workers=1)
    for name, values in state_dict(trained).items():
        assert torch.equal(values, state_dict(started)[name]), name
    assert trained["accuracy"][-1] == started["accuracy"][0]


def test_a_new_output_layer_is_drawn_by_the_seed_of_the_run():
    histories = run_all([spec(start=PRETRAINED, iterations=0, seed=seed) for seed in (0, 1)])
    starts = [state_dict(history) for history in histories]
    differ = {name for name in starts[0] if not torch.equal(starts[0][name], starts[1][name])}
    assert differ == {"output.weight", "output.bias"}


def test_runs_start_from_a_file_of_weights(tmp_path):
    module = models.create("resnet18", (1, 16, 16), 10, seed=7, width=2)
    save_file(module.state_dict(), tmp_path / "w.safetensors")
    [history] = run_all([spec(start=str(tmp_path / "w.safetensors"), iterations=0)])
    for name, values in state_dict(history).items():
        assert torch.equal(values, module.state_dict()[name]), name


def test_pretraining_that_fails_is_why_a_run_fails(tmp_path, monkeypatch):
    from bezoar.experiments import _prepare

    train = _prepare.train

    def fails(runs, *rest):
        if runs[0].network.name == "complete":
            raise BezoarError("no luck")
        return train(runs, *rest)

    monkeypatch.setattr(_prepare, "train", fails)
    swept = sweep([spec(start=PRETRAINED), spec()], Store(tmp_path))
    [failure] = swept.failures
    assert failure.reason == "start: its pretraining failed: no luck"


class Tiny(nn.Module):
    """A module of a user's own."""

    def __init__(self, shape: tuple[int, ...], classes: int, width: int = 3) -> None:
        super().__init__()
        self.hidden = nn.Linear(int(np.prod(shape)), width)
        self.output = nn.Linear(width, classes)

    def forward(self, samples):
        return self.output(torch.tanh(self.hidden(samples.flatten(1))))


OWN = """
import torch
from torch import nn

def tiny(shape, classes, width: int = 3):
    features = shape[0] * shape[1] * shape[2]
    layers = nn.Linear(features, width), nn.Tanh(), nn.Linear(width, classes)
    return nn.Sequential(nn.Flatten(), *layers)
"""


def test_a_model_of_ones_own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    wanted = [spec(model=f"{tmp_path}/own.py:tiny:width={width}") for width in (3, 4)]
    swept = sweep(wanted, Store(tmp_path / "store"))
    assert not swept.failures
    histories = run_all(wanted, workers=1)
    sizes = [history.models.shape[1] for history in histories]
    assert sizes == [256 * width + width + 10 * width + 10 for width in (3, 4)]
    [given] = run_all([spec(model=Tiny)])
    assert given.models.shape == (4, 256 * 3 + 3 + 30 + 10)
    with pytest.raises(BezoarError, match="no option 'wide'"):
        spec(model=f"{tmp_path}/own.py:tiny:wide=3")
    with pytest.raises(BezoarError, match=r"expected a torch\.nn\.Module, found int"):
        run_all([spec(model=lambda shape, classes: 5)])
    with pytest.raises(BezoarError, match="found one of 1 parameters"):
        spec(model=lambda shape: nn.Linear(2, 2))
