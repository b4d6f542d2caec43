"""Theorems 1 and 2 on real runs, where their conditions are met and where they are not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bezoar import BezoarError, aggregators, attacks, data, networks, paper, theory, training
from bezoar._seeds import Purpose, generator
from bezoar.paper._study_pages import _theorems_caption

COMPLETE, TWO_CASTLE, FAN = paper.theorem_networks()


def check(checked):
    for objective, verdict in ((name, one) for name, several in checked.items() for one in several):
        print(objective, verdict)  # shown with pytest -s
        assert verdict.applies, str(verdict)
        assert verdict.holds, str(verdict)
        assert 0 < verdict.error <= min(verdict.bound, verdict.promise.total)
        # ω ≥ 0.2 in all of these: the printed terms cover the proof's bound, see robust_bound.
        assert verdict.bound <= verdict.promise.total * (1 + 1e-9) or verdict.promise.omega < 0.2
        assert verdict.slack >= 1
        assert "holds" in str(verdict)


@pytest.mark.parametrize(
    ("objective", "network"),
    [("iid", COMPLETE), ("dirichlet", TWO_CASTLE), ("by_class", TWO_CASTLE)],
    ids=["iid", "dirichlet", "by_class"],
)
def test_softmax_on_mnist(objective, network):
    checked = paper.theorem_study([objective], [network], workers=1)
    check(checked)
    found = {one.run.aggregator.name: one for one in checked[objective]}
    assert set(found) == set(paper.THEOREM_RULES)
    assert 0.5 <= found["ios"].smoothness < 2
    assert found["weighted_mean"].promise.theorem == "Theorem 2"
    assert np.isnan(found["weighted_mean"].rho)
    assert found["ios"].promise.theorem == "Theorem 1"
    assert 0 < found["ios"].rho < 0.25


def test_random_quadratics():
    check(paper.theorem_study(["quadratic"], [COMPLETE, TWO_CASTLE], workers=1))


def test_a_report_says_which_conditions_fail():
    checked = paper.theorem_study(["quadratic"], [FAN], iterations=20, workers=1)
    for verdict in checked["quadratic"]:
        assert not verdict.applies
        assert verdict.holds is None
        assert "does not apply" in str(verdict)
        assert ("λ < 1: fails" in str(verdict)) == (verdict.rho >= 0)  # nothing but the mean's NaN
    assert "24λ'²L²/(1−λ')²" in str(checked["quadratic"][0])


def test_a_caption_says_for_which_objectives_a_condition_fails():
    rules = ["weighted_mean", "faba"]
    checks = paper.theorem_study(["iid", "by_class"], [COMPLETE], rules, iterations=1, workers=1)
    assert [[each.applies for each in found] for found in checks.values()] == [
        [True, False],
        [False, False],
    ]
    told = _theorems_caption(checks, {})
    assert "L²} fails for WeiMean (MNIST, by class): nothing is promised." in told
    assert "L²} fails for FABA: nothing is promised." in told


def test_clipping_regular_inputs_leaves_theorem_1():
    checked = paper.theorem_study(
        ["by_class"],
        [TWO_CASTLE],
        ["centered_clipping", "clipped_gossip"],
        iterations=20,
        workers=1,
        clipping=0.1,
    )
    for verdict in (one for several in checked.values() for one in several):
        assert verdict.rho > 0.25
        assert "ρ < (1−λ)/4: fails" in str(verdict)


def test_a_clean_network_has_no_disturbance():
    clean = networks.two_castle(poisoned=0)
    checked = paper.theorem_study(["quadratic"], [clean], ["weighted_mean"], workers=1)
    [verdict] = checked["quadratic"]
    assert np.isnan(verdict.disturbance)
    assert verdict.holds


def test_suprema_are_taken_where_the_proofs_need_them():
    """Against a plain loop over all of a run's points, nothing left out."""
    network = networks.two_castle(8)
    flip = attacks.create("label_flip")
    rules = ["weighted_mean", "trimmed_mean", "ios"]
    runs = [training.Run(network, aggregators.create(rule), flip) for rule in rules]
    dataset = paper.reduced_mnist(8)
    divide = data.partition("by_class")
    partition = divide(dataset.train_labels, 10, 8, generator(0, Purpose.PARTITION))

    def make(runs, workers):
        return training.SoftmaxTask(dataset, partition, runs, workers, "float64")

    verdicts = paper.verify(make, runs, 12, workers=1)
    timed = [
        training.Run(network, aggregators.create(rule), flip, training.Horizon()) for rule in rules
    ]
    for run, verdict in zip(timed, verdicts, strict=True):
        xi, A, rho = plain_suprema(make, run, network)
        assert verdict.heterogeneity == pytest.approx(xi, rel=1e-9)
        assert verdict.disturbance == pytest.approx(A, rel=1e-9)
        assert np.isnan(verdict.rho) if rho is None else verdict.rho == pytest.approx(rho)


def plain_suprema(make, run, network):
    regular, poisoned = list(network.regular), list(network.poisoned)
    kind = theory.MATRIX_OF.get(run.aggregator.name)
    seen, rhos = [], []
    with training.Workers(1) as pool:
        engine = training.Engine(make([run], pool), iterations=12)

        def observe(iteration, sent, made):
            seen.append(made.clone())
            if kind:
                pair = sent.flatten(2).numpy(), made.flatten(2).numpy()
                rhos.append(theory.measured_contraction(*pair, network, kind).rho)

        seen.append(engine.start().models)
        engine.train(observe=observe)
        xi = A = 0.0
        for models in seen:
            flat = models.flatten(2)
            if kind:
                perron = torch.from_numpy(theory.perron_vector(network, kind))
                points = [(perron @ flat[0, regular], regular)]
                points += [(flat[0, agent], [agent]) for agent in regular]
            else:
                points = [(flat[0].mean(0), regular)]
            for at, (point, judged) in enumerate(points):
                common = point.view(1, *models.shape[2:])
                gradients = engine.task.gradients_at(common, models)[0].flatten(2)[0]
                apart = (gradients - gradients[regular].mean(0)).norm(dim=1)
                xi = max(xi, float(apart[judged].max()))
                if at == 0:
                    A = max(A, float(apart[poisoned].max()))
    return xi, A, max(rhos, default=None)


def test_what_no_theorem_covers_is_refused():
    network = networks.two_castle()

    def run(rule="ios", attack="label_flip", **options):
        return training.Run(network, aggregators.create(rule), attacks.create(attack), **options)

    for wrong, message in (
        (run("krum"), "aggregator: no theorem is known for 'krum'; allowed: weighted_mean, "),
        (run(weight_decay=0.1), "weight_decay: expected 0 here, found 0.1"),
        (run(attack="dynamic_label_flip"), "attack: labels that follow the model"),
        (run(attack="sign_flip"), "attack: the theorems are about wrong labels"),
        (run(optimizer=training.Momentum()), "optimizer: expected a plain step"),
        (replace(run(), network=[network, network]), "network: the theorems are about one network"),
    ):
        with pytest.raises(BezoarError, match=message):
            paper.verify(training.random_quadratics, [wrong], 5, workers=1)
    done = []
    with pytest.raises(BezoarError, match="objective: 'iidd' is not known; allowed: iid"):
        paper.theorem_study(
            ["quadratic", "iidd"], iterations=2, workers=1, progress=lambda *told: done.append(told)
        )
    assert not done  # before anything is trained
    with pytest.raises(BezoarError, match="side: expected a divisor of 28, found 5"):
        paper.reduced_mnist(side=5)


@pytest.mark.parametrize("constant", ["smoothness", "initial_gap"])
def test_tasks_that_do_not_know_their_constants_are_refused(constant):
    Unknown = type("Unknown", (training.QuadraticTask,), {constant: lambda *_: None})

    def make(runs, workers):
        task = training.random_quadratics(runs, workers)
        task.__class__ = Unknown
        return task

    flip = attacks.create("label_flip")
    runs = [training.Run(COMPLETE, aggregators.create("faba"), flip)]
    with pytest.raises(BezoarError, match="task: expected one that knows L and f"):
        paper.verify(make, runs, 30, workers=1)


def test_consensus_errors_fall_like_one_over_k():
    slopes = paper.consensus_exponents(TWO_CASTLE, iterations=(64, 128, 256), workers=1)
    assert set(slopes) == set(paper.THEOREM_RULES)
    for rule, slope in slopes.items():
        print(rule, slope)
        assert -1.3 < slope < -0.7, rule
    # Without thresholds the distances scale with the step size alone.
    for rule in ("weighted_mean", "trimmed_mean", "faba", "ios", "rfa"):
        assert slopes[rule] == pytest.approx(-1, abs=0.05)
