"""Real results to report on: a small sweep on MNIST, and the same with summaries of it."""

import shutil

import pytest

from bezoar.experiments import Store, expand, network_of_run, spec_of, sweep
from bezoar.report import Curve, Image, JudgedClaim, Page, Panel, Table, panels_figure

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
            if spec_of(run).network.name == network
            and spec_of(run).aggregator.options.get("threshold") != 0.3
        ]
        figure(folder / f"fig{place}", network, mine)
    Page(
        name="table1",
        title="Table I",
        caption="δ stands for δ_max.",
        command="bezoar reproduce table1",
        tables=(Table(title="Orders", columns=("rule", "ρ"), rows=(("IOS", "0.1667"),)),),
    ).save(folder / "table1")
    return folder


def rule_of(run):
    return "baseline" if spec_of(run).poisoned == () else spec_of(run).aggregator.name


def figure(folder, network, runs):
    first = next(run for run in runs if rule_of(run) == "ios")
    panel = Panel(network, (Curve("ios", (first,)),), network_of_run(first))
    panels_figure(folder / "curves.png", [panel])
    panels = {}
    for run in runs:
        rules = panels.setdefault(f"{network}, {spec_of(run).partition}", {})
        rules.setdefault(rule_of(run), []).append(run)
    Page(
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
        panels=tuple(
            Panel(title, tuple(Curve.stored(several, rule) for rule, several in rules.items()))
            for title, rules in panels.items()
        ),
        metrics=("consensus_error", "accuracy"),
    ).save(folder)
