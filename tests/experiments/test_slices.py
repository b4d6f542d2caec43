"""Sweeps whose groups are trained in slices by workers that may die, be silent or be wrong."""

import io
import pickle
from concurrent.futures import BrokenExecutor, Executor, Future

import pytest
from safetensors.torch import save_file
from sweep_runs import Interrupted, Notes, contents, specs
from sweep_server import as_images
from torch import zeros

from bezoar import BezoarError, aggregators, data, experiments
from bezoar.experiments import (
    ExecutorError,
    Store,
    _advance,
    _elsewhere,
    _sweep,
    advance,
    expand,
    prepare,
    run_key,
    versions,
)

pytestmark = pytest.mark.usefixtures("quick")


class Inline(Executor):
    """Calls at once, with what would go over a network; may do otherwise in some calls.

    Args:
        wrong: "silent" or "dies", by the number of a call, counted from 1.
    """

    def __init__(self, wrong=None):
        self.calls, self.wrong = 0, wrong or {}

    def submit(self, fn, /, *given):
        self.calls += 1
        wrong, future = self.wrong.get(self.calls), Future()
        if wrong == "silent":
            return future
        if wrong == "dies":
            future.set_exception(BrokenExecutor("it is gone"))
            return future
        answer = over_the_network(fn(*over_the_network(given)))
        future.set_result(answer)
        return future


class Plain(pickle.Unpickler):
    """Reads plain data and arrays, and nothing else."""

    def find_class(self, module, name):
        assert module.partition(".")[0] in ("numpy", "_codecs"), (module, name)
        return super().find_class(module, name)


def over_the_network(what):
    return Plain(io.BytesIO(pickle.dumps(what))).load()


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Every iteration is a slice, and a worker is silent when it does not answer at once."""
    monkeypatch.setenv("BEZOAR_THREADS", "1")
    monkeypatch.setattr(_elsewhere, "WORTH", 0)
    monkeypatch.setattr(_elsewhere, "LEAST", 0.0)
    monkeypatch.setattr(_sweep, "PATIENCE", 0.01)


def swept(wanted, store, executor, watch=None, at_once=2, seconds=0.0):
    return experiments.sweep(wanted, store, executor, watch, seconds, at_once=at_once)


def test_the_same_store_as_a_sweep_in_one_process(store, expected):
    wanted = specs(seed=[0, 1, 2], keep_models=True, agent_metrics=True, listening=[[2, 5]])
    notes, executor = Notes(), Inline()
    swept(wanted, store, executor, notes)
    assert executor.calls == 3 * 6
    assert contents(store) == expected(wanted)
    assert notes.messages == []
    assert list(store.groups_folder.iterdir()) == []


def test_who_computed_is_told(store, monkeypatch):
    monkeypatch.setenv("BEZOAR_DEVICE", "cpu:0")
    [run, *_] = swept(specs(), store, Inline()).runs
    assert run.provenance["device"] == "cpu:0"
    assert run.provenance["worker"] == _advance._name()
    assert {"machine", "started", "trained_with"} <= run.provenance.keys()


def test_a_worker_that_dies_or_is_silent_costs_a_slice(store, expected):
    wanted, notes = specs(seed=[0, 1]), Notes()
    swept(wanted, store, Inline({3: "dies", 6: "silent", 7: "dies", 8: "silent"}), notes)
    assert contents(store) == expected(wanted)
    lost = [message for message in notes.messages if "BrokenExecutor: it is gone" in message]
    silent = [message for message in notes.messages if message.startswith("no answer for 0 s")]
    assert len(lost) == 2
    assert len(silent) >= 2


def test_that_no_worker_is_there_is_told_and_nothing_is_sent_again(store, monkeypatch):
    monkeypatch.setattr(_elsewhere, "NOBODY", 0.2)
    monkeypatch.setattr(_elsewhere, "LOOK", 0.0)

    class Lonely(Inline):
        """Answers when a worker is there."""

        def submit(self, fn, /, *given):
            self.calls += 1
            self.asked, self.future = (fn, given), Future()
            return self.future

    class Helped(Notes):
        def workers(self, count):
            told.append(count)

    def workers():
        if not told:
            return 0
        if not executor.future.done():
            fn, given = executor.asked
            executor.future.set_result(fn(*given))
        return 3

    told, executor, notes = [], Lonely(), Helped()
    swept(specs(), store, executor, notes, workers, seconds=60.0)
    assert told == [0, 3]
    assert executor.calls == 1  # the slice was not sent once more
    assert notes.messages == []


@pytest.mark.parametrize("call", [2, 6])
def test_what_arrives_twice_is_kept_once(store, expected, call):
    """A slice, the last one too, is answered by a silent worker just when another has done it."""

    class Late(Inline):
        def submit(self, fn, /, *given):
            future = super().submit(fn, *given)
            if self.calls == call:
                self.silent = future
            elif self.calls == call + 1:
                self.silent.set_result(future.result())
            return future

    executor, notes = Late({call: "silent"}), Notes()
    swept(specs(), store, executor, notes)
    assert executor.calls == 6 + 1
    assert notes.failed == [False]
    assert contents(store) == expected(specs())


def test_workers_that_always_die_fail_the_run_alone(store):
    """A group is taken apart, as when its training fails."""
    deadly = specs(aggregator="mean")

    class Deadly(Inline):
        def submit(self, fn, /, given, *more):
            if run_key(deadly[0]) not in given:
                return super().submit(fn, given, *more)
            future = Future()
            future.set_exception(BrokenExecutor("out of memory"))
            return future

    notes = Notes()
    result = swept(specs(), store, Deadly(), notes)
    [failure] = result.failures
    assert failure.spec == deadly[0]
    reason = "executor: 3 workers died of it: BrokenExecutor: out of memory"
    assert failure.reason == reason
    assert len(result.finished) == 2
    assert [len(keys) for keys in notes.trained] == [3, 1, 1, 1]


def test_a_run_that_fails_at_a_worker_does_not_stop_the_others(store, monkeypatch):
    class Fragile(aggregators.WeightedAggregator):
        name, label = "fragile", "Fragile"

        def weights(self, neighbourhood):
            raise ZeroDivisionError("division by zero")

    monkeypatch.setitem(aggregators.AGGREGATORS, "fragile", Fragile)
    result = swept(specs(aggregator=["ios", "fragile", "mean"]), store, Inline())
    assert [failure.reason for failure in result.failures] == [
        "ZeroDivisionError: division by zero"
    ]
    assert len(result.finished) == 2


def test_a_start_that_does_not_fit_fails_its_run_alone(store, tmp_path):
    path = tmp_path / "small.safetensors"
    save_file({"output.weight": zeros(10, 5), "output.bias": zeros(10)}, path)
    result = swept(specs(aggregator="mean", start=[str(path), "zero"]), store, Inline())
    [failure] = result.failures
    assert f"{path} does not fit the model; misshapen: output.weight" in failure.reason
    assert len(result.finished) == 1


def test_infinite_options_reach_the_worker(store, expected):
    wanted = specs(aggregator="clipped_gossip:threshold=inf")
    assert len(swept(wanted, store, Inline()).finished) == 1
    assert contents(store) == expected(wanted)


def test_stopped_it_goes_on_here_or_there(store, expected, tmp_path):
    other = Store(tmp_path / "other")
    for place, first, second in ((store, Inline(), None), (other, None, Inline())):
        with pytest.raises(KeyboardInterrupt):
            swept(specs(), place, first, Interrupted(3))
        notes = Notes()
        swept(specs(), place, second, notes)
        assert notes.began_at == [3]
        assert contents(place) == expected(specs())


def test_a_checkpoint_that_cannot_be_used_is_left_aside(store, expected):
    with pytest.raises(KeyboardInterrupt):
        swept(specs(), store, Inline(), Interrupted(3))
    [path] = store.groups_folder.glob("*/checkpoint.safetensors")
    path.write_bytes(path.read_bytes().replace(b"seed 0", b"seed 1"))
    notes = Notes()
    swept(specs(), store, Inline(), notes)
    [message] = notes.messages
    assert "made in another training" in message
    assert notes.began_at == [3, 0]
    assert contents(store) == expected(specs())


def test_a_worker_with_other_files_or_versions_stops_the_sweep(store, monkeypatch):
    wanted = specs()
    monkeypatch.setattr(_advance, "_held", None)
    with monkeypatch.context() as patch:
        patch.setattr(_advance, "versions", lambda: versions() | {"torch": "1.0"})
        with pytest.raises(ExecutorError, match=r"worker .*/\d+: .* torch 1.0, not "):
            swept(wanted, store, Inline(), None)
    whole = data.load("some_digits")
    train, labels = whole.train[:100], whole.train_labels[:100]
    fewer = data.Dataset("some_digits", train, labels, whole.test, whole.test_labels, 10)
    real = prepare

    def elsewhere(spec):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(data.DATASETS, "some_digits", lambda: fewer)
            return real(spec)

    with monkeypatch.context() as patch:
        patch.setattr(_advance, "prepare", elsewhere)
        with pytest.raises(ExecutorError, match=r"its data, network, files or own code differ"):
            swept(wanted, store, Inline(), None)
    assert store.finished_keys() == []
    assert len(swept(wanted, store, Inline()).finished) == 3  # nothing was lost


def test_what_a_worker_does_not_know_is_refused(digits):
    answer = advance({"0" * 32: {"dataset": "nowhere.npz"}}, None, 1.0)
    assert "nowhere.npz" in answer["refused"]
    assert "damaged" in advance({"0" * 32: {}}, b"nonsense", 1.0)["unusable"]


def test_an_executor_that_ends_stops_the_sweep(store):
    class Ends(Inline):
        def submit(self, fn, /, *given):
            if self.calls == 3:
                raise RuntimeError("cannot schedule new futures after shutdown")
            return super().submit(fn, *given)

    with pytest.raises(ExecutorError, match="executor: it takes no more work: RuntimeError"):
        swept(specs(), store, Ends())
    notes = Notes()
    swept(specs(), store, Inline(), notes)
    assert notes.began_at == [3]


def test_how_many_at_once(store):
    with pytest.raises(BezoarError, match="at_once: Inline does not tell"):
        swept(specs(), store, Inline(), at_once=None)
    with pytest.raises(BezoarError, match="executor: expected a concurrent"):
        swept(specs(), store, "processes")


def test_runs_that_start_from_a_trained_model(store, tmp_path, digits, monkeypatch):
    """The model is trained once, by a worker, and sent to those that start from it."""
    images = as_images(digits)
    monkeypatch.setitem(data.DATASETS, "digit_images", lambda: images)
    start = {"name": "pretrained", "epochs": 1, "batch": 100}
    wanted = expand(
        {
            "dataset": "digit_images",
            "model": "resnet18:width=2",
            "start": start,
            "iterations": 2,
            "every": 2,
            "batch": 4,
            "metrics": ["accuracy"],
            "aggregator": "mean",
            "seed": [0, 1],
        }
    )
    here = Store(tmp_path / "here")
    experiments.sweep(wanted, here, workers=1)
    notes = Notes()
    swept(wanted, store, Inline(), notes, at_once=3)
    assert contents(store) == contents(here)
    assert len(notes.trained) == 3
    assert notes.messages == []
