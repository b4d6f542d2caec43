import numpy as np
import pytest
import torch
from small_networks import POSSIBLE

from bezoar import BezoarError, aggregators, attacks, networks, training


def run_of(rule="ios", network=None, attack="label_flip", **options):
    return training.Run(
        network or networks.fan(),
        aggregators.create(rule, **POSSIBLE.get(rule, {})),
        attacks.create(attack),
        **options,
    )


def same_bits(left, right):
    assert torch.equal(left.models, right.models)
    for name in left.metrics:
        assert np.array_equal(left[name], right[name], equal_nan=True), name


def test_the_same_bits_whatever_the_number_of_workers(problem):
    shared = problem(dtype="float32", iterations=5)
    runs = [run_of(rule) for rule in aggregators.AGGREGATORS]
    results = []
    for count in (1, 2, 3):
        with training.Workers(count) as pool:
            results.append(shared.engine(runs, pool).train())
    for other in results[1:]:
        for left, right in zip(results[0], other, strict=True):
            same_bits(left, right)


def test_the_same_bits_beside_other_runs(problem, workers):
    """What else is in the batch does not matter, as long as its shape is the same."""
    shared = problem(dtype="float32", iterations=5)
    first = [run_of("ios"), run_of("faba"), run_of("ios", networks.two_castle())]
    second = [run_of("ios", attack="random_labels"), run_of("trimmed_mean"), run_of("ios")]
    left = shared.engine(first, workers).train()[0]
    right = shared.engine(second, workers).train()[2]
    same_bits(left, right)


def test_histories_come_in_the_order_of_the_runs(problem, workers):
    shared = problem(iterations=2)
    rules = ["ios", "local", "weighted_mean", "local", "ios"]
    runs = [run_of(rule, seed=place) for place, rule in enumerate(rules)]
    together = shared.engine(runs, workers).train()
    for run, history in zip(runs, together, strict=True):
        [alone] = shared.engine([run], workers).train()
        assert torch.allclose(alone.models, history.models, rtol=1e-11, atol=1e-11)


def test_when_metrics_are_taken(problem, workers):
    calls = []
    engine = problem(iterations=7, every=3).engine([run_of()], workers)
    [history] = engine.train(lambda iteration, metrics: calls.append(iteration))
    assert history.iterations.tolist() == [0, 3, 6, 7]
    assert calls == [1, 2, 3, 4, 5, 6, 7]
    [nothing] = problem(iterations=0).engine([run_of()], workers).train()
    assert nothing.iterations.tolist() == [0]
    assert torch.count_nonzero(nothing.models) == 0


@pytest.mark.parametrize("names", [("accuracy",), ("heterogeneity", "accuracy_worst"), ()])
def test_only_the_metrics_asked_for(problem, workers, names):
    [history] = problem(metrics=names).engine([run_of()], workers).train()
    assert tuple(history.metrics) == names
    with pytest.raises(
        BezoarError, match=f"metric: 'loss' is not known; allowed: {', '.join(names)}"
    ):
        history["loss"]


def test_the_poison_share_tells_who_was_listened_to(problem, workers):
    shared = problem(iterations=1, every=1)
    rules = ["weighted_mean", "local", "mean", "trimmed_mean", "median"]
    histories = shared.engine([run_of(rule) for rule in rules], workers).train()
    share = {rule: h["poison_share"] for rule, h in zip(rules, histories, strict=True)}
    assert all(np.isnan(values[0]) for values in share.values())
    assert share["weighted_mean"][1] == pytest.approx(0.1)  # 1/(max degree 9 + 1) everywhere
    assert share["local"][1] == 0
    assert share["mean"][1] == pytest.approx((2 / 3 + 7 / 4) / 9)  # two ends, seven between
    for rule in ("trimmed_mean", "median"):
        assert 0 < share[rule][1] < 1
    clean = run_of("trimmed_mean", networks.fan().with_poisoned(()))
    [nobody] = shared.engine([clean], workers).train()
    assert nobody["poison_share"][1] == 0
    assert np.isnan(nobody["disturbance"]).all()


def test_weighted_mean_keeps_the_average_of_all_agents(problem, workers):
    """A doubly stochastic matrix moves nothing on average: the aggregation step keeps the mean."""
    engine = problem().engine([run_of("weighted_mean")], workers)

    def keeps_the_mean(iteration, messages, models):
        assert torch.allclose(models.mean(1), messages.mean(1), atol=1e-12)
        assert not torch.allclose(models, messages, atol=1e-3)

    engine.train(observe=keeps_the_mean)


@pytest.mark.parametrize("wild", [{"scale": 1e38}, {"scale": 1e39}, {"weight_decay": 10**39}])
def test_a_run_that_diverges_disturbs_nobody(problem, workers, wild):
    shared = problem(dtype="float32", iterations=4, every=1)
    schedule = training.schedule("constant", scale=wild.get("scale", 1.0))
    decay = wild.get("weight_decay", 0.0)
    wild = run_of("weighted_mean", schedule=schedule, weight_decay=decay)
    calm, other = run_of("ios"), run_of("ios", attack="random_labels")
    diverged, kept = shared.engine([wild, calm], workers).train()
    assert diverged.diverged
    assert not kept.diverged
    _, expected = shared.engine([other, calm], workers).train()
    assert torch.allclose(kept.models, expected.models, atol=1e-5)


def test_a_weight_decay_may_be_a_number_of_numpy(problem, workers):
    [found], [expected] = (
        problem(iterations=2).engine([run_of(weight_decay=decay)], workers).train()
        for decay in (np.float32(0.25), 0.25)
    )
    same_bits(found, expected)


def test_schedules():
    assert training.schedule("inverse_sqrt", scale=0.2)(4, 100) == pytest.approx(0.1)
    assert training.schedule("constant", scale=0.2)(4, 100) == 0.2
    assert training.schedule("horizon")(4, 100) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"aggregator": "ios"}, "aggregator: expected an instance of Aggregator, found 'ios'"),
        ({"aggregator": aggregators.IOS}, "aggregator: expected an instance of Aggregator, found"),
        ({"attack": "label_flip"}, "attack: expected an instance of Attack, found 'label_flip'"),
        ({"schedule": 0.1}, "schedule: expected an instance of Schedule, found 0.1"),
        ({"optimizer": "plain"}, "optimizer: expected an instance of Optimizer, found 'plain'"),
        ({"seed": -1}, "seed: expected an integer of at least 0, found -1"),
        ({"seed": 1.5}, "seed: expected an integer of at least 0, found 1.5"),
    ],
)
def test_a_run_of_other_parts_is_refused(change, message):
    parts = {"aggregator": aggregators.create("mean"), "attack": attacks.create("label_flip")}
    with pytest.raises(BezoarError, match=message):
        training.Run(networks.fan(), **parts | change)


@pytest.mark.parametrize("change", [{"listening": [1.5]}, {"algorithm": "gossip"}])
def test_a_training_of_other_parts_is_refused(workers, change):
    task = training.random_quadratics([run_of("mean")], workers)
    [field] = change
    with pytest.raises(BezoarError, match=f"{field}: expected"):
        training.Engine(task, iterations=2, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metrics": ("accurcy",)}, "metrics: 'accurcy' is not known; allowed: accuracy, "),
        ({"every": 0}, "every: expected an integer of at least 1, found 0"),
        ({"iterations": -1}, "iterations: expected an integer of at least 0, found -1"),
        ({"dtype": "float16"}, "dtype: 'float16' is not known; allowed: float"),
        ({"device": None}, "device: None cannot be used here .*; allowed: cpu, "),
        ({"device": "abacus"}, r"device: 'abacus' cannot be used here .*; allowed: cpu, "),
        ({"agents": 5}, "partition: made for 5 agents, but the fan network has 10"),
    ],
)
def test_problems_that_cannot_be_are_refused(problem, workers, change, message):
    with pytest.raises(BezoarError, match=message):
        problem(**change).engine([run_of()], workers)


def test_runs_that_cannot_be_are_refused(problem, workers):
    with pytest.raises(BezoarError, match="runs: at least one"):
        problem().engine([], workers)
    with pytest.raises(BezoarError, match="weight_decay: expected a number of at least 0"):
        problem().engine([run_of(weight_decay=-1)], workers)
    with pytest.raises(BezoarError, match=r"scale: expected a number of more than 0\.0, found 0"):
        training.schedule("constant", scale=0)
    crowded = networks.line(10, {3, 4, 5})
    with pytest.raises(BezoarError, match="faba: impossible at agent 4 of the line network"):
        problem().engine([run_of("faba", crowded)], workers)
    attack = attacks.create("targeted", target=11)
    run = training.Run(networks.fan(), aggregators.create("mean"), attack)
    with pytest.raises(BezoarError, match="target 11 is not a class; allowed: 0 … 9"):
        problem().engine([run], workers)


def test_an_error_in_a_worker_is_raised(workers):
    def work(item):
        raise RuntimeError(f"item {item}")

    with pytest.raises(RuntimeError, match="item 0"):
        workers.map(work, range(3))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_poisoned_model_that_is_not_finite_leaves_the_metrics_alone(problem, workers, value):
    """They are about the regular agents, all but the disturbance and the average of all."""
    engine = problem().engine([run_of("local")], workers)
    state = engine.step(engine.start())
    expected = engine.measure(state)
    state.models[:, networks.fan().poisoned[0]] = value
    found = engine.measure(state)
    assert found.pop("accuracy_all").isnan().all()
    for name in found:
        assert torch.allclose(found[name], expected[name], rtol=1e-12, equal_nan=True), name


def test_a_task_may_lay_out_its_models_as_it_likes(workers):
    class Turned(training.QuadraticTask):
        """Quadratics whose models are not contiguous."""

        def start(self):
            return {
                "models": super().start()["models"].transpose(0, 1).contiguous().transpose(0, 1)
            }

    runs = [run_of("mean"), run_of("ios")]
    found = []
    for kind in (training.QuadraticTask, Turned):
        task = training.random_quadratics(runs, workers)
        task.__class__ = kind
        found.append([h.models for h in training.Engine(task, iterations=5).train()])
    for straight, turned in zip(*found, strict=True):
        assert torch.equal(straight, turned)
        assert straight.abs().max() > 0


def test_a_metric_that_needs_a_test_set_is_refused_without_one(workers):
    task = training.random_quadratics([run_of("mean")], workers)
    told = "metrics: accuracy cannot be measured on this task, .* allowed: training_loss, "
    with pytest.raises(BezoarError, match=told):
        training.Engine(task, iterations=1, metrics=("accuracy", "consensus_error"))


@pytest.mark.parametrize("network", ["fan", [1, 2], None, []])
def test_what_is_no_network_is_refused(network):
    with pytest.raises(BezoarError, match="network: "):
        training.Run(network, aggregators.create("mean"), attacks.create("label_flip"))
