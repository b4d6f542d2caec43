"""Real results to report on: a small sweep on MNIST, and the same with summaries of it."""

import shutil

import pytest

from bezoar.experiments import Store, expand, network_of, sweep
from bezoar.report import Panel, look, panels_figure
from bezoar.report._summary import Curve, Image, JudgedClaim, Summary, Table

RULES = ["weighted_mean", "ios", {"name": "clipped_gossip", "threshold": [0.1, 0.3]}]

#: Two networks, three rules of which one with two sets of options, the baseline; and, where the
#: partition is drawn, two seeds.
DOCUMENT = {
    "iterations": 4,
    "every": 2,
    "group": [
        {"network": ["two_castle", "fan"], "partition": "by_class", "aggregator": RULES},
        {"network": ["two_castle", "fan"], "partition": "by_class", "poisoned": []},
        {"network": "fan", "partition": "iid", "aggregator": RULES[:2], "seed": [0, 1]},
        {"network": "fan", "partition": "iid", "poisoned": [], "seed": [0, 1]},
    ],
}

OUTCOMES = ("holds", "does not hold", "undecided")


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    """A folder with a store, as a sweep leaves it."""
    folder = tmp_path_factory.mktemp("swept")
    done = sweep(expand(DOCUMENT), Store(folder / "store"))
    assert not done.failures
    return folder


@pytest.fixture(scope="session")
def reproduced(swept, tmp_path_factory):
    """A folder as reproducing leaves it: two figures with claims, a table, and the store."""
    folder = tmp_path_factory.mktemp("reproduced")
    shutil.copytree(swept / "store", folder / "store")
    runs = list(Store(folder / "store").runs())
    for place, network in enumerate(("two_castle", "fan"), start=1):
        mine = [
            run
            for run in runs
            if run.spec.network.name == network
            and run.spec.aggregator.options.get("threshold") != 0.3
        ]
        figure(folder / f"fig{place}", network, mine)
    Summary(
        name="table1",
        title="Table I",
        caption="δ stands for δ_max.",
        command="bezoar reproduce table1",
        tables=(Table(title="Orders", columns=("rule", "ρ"), rows=(("IOS", "0.1667"),)),),
    ).save(folder / "table1")
    return folder


def rule_of(run):
    return "baseline" if run.spec.poisoned == () else run.spec.aggregator.name


def figure(folder, network, runs):
    first = next(run for run in runs if rule_of(run) == "ios")
    panel = Panel(network, network_of(first.spec), [(look("ios"), first)])
    panels_figure(folder / "curves.png", [panel])
    Summary(
        name=folder.name,
        title=f"Figure on {network}",
        caption="What to see: ‖x_w − x̄‖² is at most 1e-05.",
        command=f"bezoar reproduce {folder.name} --iterations 4",
        images=(Image(file="curves.png", alt=f"Curves on {network}."),),
        claims=tuple(
            JudgedClaim(
                text=f"A claim that {verdict}.",
                verdict=verdict,
                measured="WeiMean 0.757, IOS 0.653.",
                margins=(0.1,),
                resolution=0.01,
                paper="Section I",
            )
            for verdict in OUTCOMES
        ),
        curves=tuple(
            Curve(key=run.key, panel=f"{network}, {run.spec.partition}", rule=rule_of(run))
            for run in runs
        ),
        metrics=("consensus_error", "accuracy"),
    ).save(folder)
