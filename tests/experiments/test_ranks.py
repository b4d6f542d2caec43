"""Two ranks find what one process does, whatever happens in between."""

import numpy as np
import pytest
from rank_runs import CASES, spec_of, start, stored, torchrun, trained

from bezoar import BezoarError
from bezoar.experiments import Store, prepare, run_all
from bezoar.experiments._prepare import _task
from bezoar.experiments._ranks import _ShardTrainer
from bezoar.training import Engine, Workers

#: Metrics of the average model: ranks add it up in another order.
AVERAGED = ("accuracy", "accuracy_all", "test_loss", "training_loss", "consensus_error")
AVERAGED += ("variance_norm", "gradient_norm", "heterogeneity", "disturbance")


@pytest.fixture(scope="module")
def folder(small_mnist, tmp_path_factory):
    path, held = tmp_path_factory.mktemp("ranks"), small_mnist
    labels = {"y_train": held.train_labels, "y_test": held.test_labels}
    np.savez(path / "digits.npz", x_train=held.train, x_test=held.test, **labels)
    few_pixels = {"x_train": held.train[..., ::4, ::4], "x_test": held.test[..., ::4, ::4]}
    np.savez(path / "few_pixels.npz", **few_pixels, **labels)
    return path


@pytest.fixture(scope="module")
def found(folder):
    """What each rank found in all cases."""
    assert start(folder, "cases") == [0, 0]
    return [dict(np.load(folder / f"rank{rank}.npz")) for rank in range(2)]


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_are_as_one_process(folder, found, case):
    run = prepare(spec_of(folder, **CASES[case]))
    with Workers(1) as workers:
        engine = Engine(
            _task([run], workers, None, run.partition()),
            iterations=run.spec.iterations,
            every=run.spec.every,
            metrics=run.metrics,
            local_steps=run.spec.local_steps,
        )
        history, models = trained(engine)
    for rank in found:
        own = models[rank[f"{case}/members"]]
        if case == "dense":  # one process takes one product for all neighbourhoods
            np.testing.assert_allclose(rank[f"{case}/models"], own, atol=1e-5)
        else:
            np.testing.assert_array_equal(rank[f"{case}/models"], own)
        for metric, values in history.metrics.items():
            near = {"rtol": 1e-4, "atol": 1e-6}
            if case != "dense" and metric not in AVERAGED:
                near = {"rtol": 1e-12}
            np.testing.assert_allclose(rank[f"{case}/{metric}"], values, **near)


def test_a_killed_rank_changes_nothing(folder):
    """It is killed in the middle of iteration 6, and ``torchrun`` starts all ranks again."""
    assert torchrun(folder, "store", 6) == 0
    store = Store(folder / "store")
    assert not list(store.groups_folder.iterdir())
    [run] = store.runs()
    assert run.provenance["ranks"] == 2
    assert 1 <= run.provenance["resumed_after"] <= 5
    [whole] = run_all([stored(folder)], workers=1)
    np.testing.assert_allclose(run.agents["accuracy"], whole.agents["accuracy"], rtol=1e-12)
    np.testing.assert_allclose(run.agents["test_loss"], whole.agents["test_loss"], rtol=1e-6)
    for metric in set(whole.metrics) - set(AVERAGED):
        np.testing.assert_allclose(run.metrics[metric], whole.metrics[metric], rtol=1e-12)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"attack": "sign_flip"}, "attack sign_flip: it changes messages"),
        ({"model": "resnet18:width=2"}, "model: it has buffers"),
        ({"listening": [1]}, "listening: not with several ranks"),
        ({"keep_models": True}, "keep_models: not with several ranks"),
    ],
)
def test_what_several_ranks_cannot_do_is_refused(folder, fields, told):
    """It is found before the other ranks are told of the run."""
    trainer = _ShardTrainer(ranks=None, workers=None, store=None, seconds=0)
    with pytest.raises(BezoarError, match=told):
        trainer.lead([prepare(spec_of(folder, **fields))], None)
