"""The host asks the device once in a step, and the answer changes nothing but the time it takes."""

import pytest
import torch
from host_questions import host_questions
from small_networks import Residual, deal, run_of

from bezoar import aggregators, networks, training
from bezoar._questions import asked_late
from bezoar.aggregators import AGGREGATORS
from bezoar.exchange import Exchange, Tuning

LATE = Tuning(ask_late=True, compiled=False)

NETWORKS = {
    "dense": networks.two_castle(),
    "sizes": networks.fan(),
    "sparse": networks.ring(40),
}

#: Small pieces, so that work is cut up as it is where there is much of it.
CUT_UP = {"piece_bytes": 1 << 14, "block_bytes": 1 << 12, "columns": 64, "long": 128}


def softmax(dataset, runs, workers, partition):
    return training.SoftmaxTask(dataset, partition, runs, workers)


def network(dataset, runs, workers, partition):
    return training.NetworkTask(
        dataset, partition, runs, workers, model=Residual, batch=4, threads=1
    )


#: Rules that go a way of their own, or stop when they are done; the others go the way of IOS.
ALONE = [name for name, rule in AGGREGATORS.items() if getattr(rule, "reads", "") != "gram"]
ALONE += ["ios", "rfa", "caf", "least_variance", "balance"]


#: What is asked by rules does not depend on the task; one of each kind is tried with both.
RULES_OF = {softmax: tuple(AGGREGATORS), network: ("weighted_mean", "ios", "median", "lfighter")}


@pytest.mark.parametrize("attack", ["label_flip", "dynamic_label_flip", "sign_flip"])
@pytest.mark.parametrize("make", RULES_OF)
@pytest.mark.parametrize("where", NETWORKS)
def test_one_question_a_step(small_mnist, make, where, attack):
    """Every rule on every kind of network, from the second step on."""
    asked = {}
    with training.Workers(1) as workers:
        for rule in RULES_OF[make]:
            run = run_of(rule, attack, network=NETWORKS[where])
            task = make(small_mnist, [run], workers, deal(small_mnist, run.network.agents))
            engine = training.Engine(task, iterations=3, tuning=LATE)
            state = engine.step(engine.start())
            asked[rule] = host_questions(lambda e=engine, s=state: e.step(s))
    assert {rule: questions for rule, questions in asked.items() if len(questions) > 1} == {}


def test_the_counter_counts():
    values = torch.arange(4.0)
    assert host_questions(lambda: values + values[[1, 2, 3, 0]]) == []
    for ask in (
        lambda: bool(values.any()),
        lambda: values[0].item(),
        lambda: values.tolist(),
        lambda: values[values > 1],
        lambda: values.nonzero(),
        lambda: values.unique(),
        lambda: values.cpu(),
        lambda: values.clone().masked_fill_(values > 1, 0).max().item(),
    ):
        with torch.inference_mode():
            assert len(host_questions(ask)) == 1
    assert len(host_questions(lambda: values.clone().__setitem__(values > 1, 0))) == 1


def hard_messages(agents):
    """Messages that need care: not finite, huge, almost equal, equal, and all of it at once."""
    messages = torch.randn(
        6, agents, 300, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    messages[1, 0, 3] = torch.nan
    messages[1, 2, 5] = torch.inf
    messages[2] = 1e6 + 1e-9 * messages[2]
    messages[3, : agents // 2] = 1e5 + 1e-8 * messages[3, : agents // 2]
    messages[4] = messages[4, :1]
    messages[5] = messages[3]
    messages[5, agents - 1] = torch.nan
    return messages


@pytest.mark.parametrize("cut", [{}, CUT_UP], ids=["whole", "cut up"])
@pytest.mark.parametrize("where", NETWORKS)
@pytest.mark.parametrize("name", ALONE)
def test_asked_late_gives_the_same_bits(name, where, cut):
    rule = aggregators.create(name)
    if name == "lfighter":
        rule = aggregators.create(name, head=(10, 20))
    here = NETWORKS[where]
    messages = hard_messages(here.agents)
    for some in (messages, messages[:1], messages[[0, 2]]):
        found = [
            Exchange(
                [rule] * len(some),
                [here] * len(some),
                tuning=Tuning(ask_late=late, compiled=False, **cut),
            )(some, tell=True)
            for late in (False, True)
        ]
        for expected, late in zip(*found, strict=True):
            assert torch.equal(expected.nan_to_num(7.5), late.nan_to_num(7.5))


def test_a_median_that_takes_long_is_found_too():
    """More steps than are taken unasked: then the rest is computed, asking."""
    messages = torch.randn(1, 10, 5, generator=torch.Generator().manual_seed(1))
    here = networks.complete(10)

    def aggregated(late, iterations=1000):
        rule = aggregators.RFA(tolerance=1e-300, iterations=iterations)
        return Exchange([rule], [here], tuning=Tuning(ask_late=late, compiled=False))(messages)[0]

    assert torch.equal(aggregated(late=True), aggregated(late=False))
    with asked_late() as some:
        aggregated(late=False)
    assert some()
