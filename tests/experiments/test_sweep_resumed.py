"""Sweeps that are interrupted, and go on."""

import numpy as np
import pytest
from sweep_runs import Interrupted, Notes, contents, specs, sweep

from bezoar import aggregators, attacks, data, networks, training
from bezoar.experiments import Store, _sweep, run_key

pytestmark = pytest.mark.usefixtures("quick")


def test_interrupted_it_goes_on_from_its_last_checkpoint(store, expected):
    with pytest.raises(KeyboardInterrupt):
        sweep(specs(), store, Interrupted(3), checkpoint_seconds=0)
    notes = Notes()
    swept = sweep(specs(), store, notes, checkpoint_seconds=0)
    assert notes.began_at == [3]
    assert contents(store) == expected(specs())
    assert swept.runs[0].provenance["resumed_after"] == 3
    assert list(store.groups_folder.iterdir()) == []


def test_an_interrupted_group_keeps_its_company(store, expected):
    """One run of it is asked for now, with another: it comes with the bits it would have had."""
    with pytest.raises(KeyboardInterrupt):
        sweep(specs(), store, Interrupted(3), checkpoint_seconds=0)
    notes = Notes()
    sweep(specs(aggregator=["median", "faba"]), store, notes)
    begun, *rest = notes.trained
    assert begun == [run_key(spec) for spec in specs()]
    assert rest == [[run_key(specs(aggregator="median")[0])]]
    assert contents(store).items() >= expected(specs()).items()


def kept(monkeypatch):
    """Counts the checkpoints that are written."""
    written = []
    save = training.Checkpoint.save
    monkeypatch.setattr(
        training.Checkpoint,
        "save",
        lambda checkpoint, path: written.append(checkpoint.iteration) or save(checkpoint, path),
    )
    return written


def test_checkpoints_are_written_when_they_are_worth_it(store, tmp_path, monkeypatch):
    written = kept(monkeypatch)
    sweep(specs(), store, checkpoint_seconds=1000)
    assert written == [6]
    written.clear()
    sweep(specs(), Store(tmp_path / "second"), checkpoint_seconds=0)
    assert written == [1, 2, 3, 4, 5, 6]
    written.clear()
    monkeypatch.setattr(_sweep, "WORTH", 10**9)
    sweep(specs(), Store(tmp_path / "third"), checkpoint_seconds=0)
    assert written == [1, 6]


def damage(path, whole):
    path.write_bytes(whole[: len(whole) // 2])


def other_training(path, whole):
    digits = data.load("some_digits")
    partition = data.partition("iid")(digits.train_labels, 10, 10, np.random.default_rng(0))
    run = training.Run(networks.fan(), aggregators.create("mean"), attacks.create("label_flip"))
    with training.Workers(1) as pool:
        task = training.SoftmaxTask(digits, partition, [run], pool)
        engine = training.Engine(task, iterations=6, every=2, metrics=("accuracy",))
        engine.train(keep=lambda checkpoint: checkpoint.save(path))


@pytest.mark.parametrize(
    ("spoil", "message"), [(damage, "is damaged"), (other_training, "made in another training")]
)
def test_a_checkpoint_that_cannot_be_used_is_left_aside(store, expected, spoil, message):
    with pytest.raises(KeyboardInterrupt):
        sweep(specs(), store, Interrupted(3), checkpoint_seconds=0)
    [path] = store.groups_folder.glob("*/checkpoint.safetensors")
    spoil(path, path.read_bytes())
    notes = Notes()
    sweep(specs(), store, notes, checkpoint_seconds=0)
    [said] = notes.messages
    assert message in said
    assert said.endswith("its 3 runs start over")
    assert notes.began_at[-1] == 0
    assert contents(store) == expected(specs())


def test_the_same_specs_in_another_order_go_on_in_the_order_they_were_begun(store, expected):
    with pytest.raises(KeyboardInterrupt):
        sweep(specs(), store, Interrupted(2), checkpoint_seconds=0)
    notes = Notes()
    sweep(specs()[::-1], store, notes)
    assert notes.trained == [[run_key(spec) for spec in specs()]]
    assert notes.began_at == [2]
    assert contents(store) == expected(specs())
