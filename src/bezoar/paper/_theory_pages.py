"""The paper's tables, and its figures of networks, as folders like those of other figures."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from bezoar import networks, theory
from bezoar._numbers import listed, number
from bezoar.networks import Network
from bezoar.paper._comparisons import NETWORK_TITLES
from bezoar.paper._figures import lower_bound_figure, networks_figure
from bezoar.report import Image, Page, Table, look


def write_table_1(folder: Path, command: str) -> Page:
    """Table I, with the values on the paper's three networks."""
    rates = {title: theory.contamination(network) for title, network in _networks().items()}
    orders = [theory.contraction_orders(rate.delta_max) for rate in rates.values()]
    rows = (
        (
            look(order[0].aggregator).label,
            order[0].order,
            "doubly stochastic" if order[0].matrix == "mixing" else "row-stochastic",
            *(number(entry.value) for entry in order),
        )
        for order in zip(*orders, strict=True)
    )
    shown = ", ".join(f"{title} {number(rate.delta_max)}" for title, rate in rates.items())
    title = "Table I: orders of the contraction constant ρ"
    caption = (
        f"δ stands for δ_max: {shown}. Orders carry no constants; inf: the order says nothing at "
        "this rate."
    )
    table = Table.of("Orders of ρ", ("aggregator", "ρ", "M", *rates), rows)
    return write_page(folder, command, title, caption, {folder.name: table})


def write_table_2(folder: Path, command: str) -> Page:
    """Table II, with the values on the paper's three networks."""
    rates = {title: theory.contamination(network) for title, network in _networks().items()}
    orders = [theory.learning_error_orders(rate) for rate in rates.values()]
    rows = (
        (order[0].aggregator, order[0].order, *(number(entry.value) for entry in order))
        for order in zip(*orders, strict=True)
    )
    title = "Table II: orders of the learning error where A = Θ(ξ)"
    caption = (
        "In units of ξ². RAgg is the best majority-dominant rule. Only ratios of these mean "
        "anything."
    )
    columns = ("aggregator", "learning error", *rates)
    table = Table.of("Orders of the learning error", columns, rows)
    return write_page(folder, command, title, caption, {folder.name: table})


def write_figure_9(folder: Path, command: str) -> Page:
    """Figure 9: the two instances of Theorem 3 with four regular and four poisoned agents."""
    instances = theory.lower_bound_instances(4, 4)
    switched = " and ".join(str(agent) for agent in instances.switched)
    text = (
        f"In both instances every regular agent hears {len(instances.network.regular)} agents with "
        "label 1 and 2 with label 2, so a majority-dominant rule cannot tell them apart, though "
        f"the regular agents {switched} have changed sides; in one of them its mean squared "
        f"gradient is at least δ_max²c²/8 = {number(instances.bound)} c²."
    )
    alt = (
        "Twice the same network: four regular agents, all linked to each other, inside; four "
        "poisoned ones around them, each linked to two. In instance 1 the regular agents have "
        f"label 1 and the poisoned ones label 2; in instance 2 the regular agents {switched} have "
        "label 2 and all others label 1."
    )
    pictures = lower_bound_figure(folder / folder.name, instances)
    title = "Figure 9: two instances that look alike"
    return write_page(folder, command, title, text, {}, pictures, alt)


def write_figure_10(folder: Path, command: str) -> Page:
    """Figure 10: the paper's three networks, with what the theory says of them."""
    rows = []
    drawn = {}
    for title, network in _networks().items():
        rates = theory.contamination(network)
        lams = (theory.connectivity(network, kind).lam for kind in theory.KINDS)
        # Rates of small networks as they are read: 1/9 rather than 0.1111.
        fractions = [Fraction(r).limit_denominator(1000) for r in (rates.delta, rates.delta_max)]
        delta, delta_max = map(str, fractions)
        drawn[title] = (network, f"δ = {delta},  δ$_{{max}}$ = {delta_max}")
        connected = "yes" if network.regular_is_connected else "no"
        edges, poisoned = str(len(network.edges)), listed(network.poisoned)
        values = map(number, (*lams, theory.mixing_gap(network)))
        rows.append((title, edges, poisoned, connected, delta, delta_max, *values))
    first = ("network", "edges", "poisoned", "connected", "δ", "δ_max")
    table = Table.of("The paper's networks", (*first, "λ uniform", "λ mixing", "λ'"), rows)
    described = " ".join(f"{row[0]}: {row[1]} edges, agent {row[2]} is poisoned." for row in rows)
    return write_page(
        folder,
        command,
        "Figure 10: the paper's networks",
        "Regular agents are blue dots, poisoned ones red squares. Connected: whether the regular "
        "agents are, among themselves. λ is that of the uniform and of the mixing virtual matrix; "
        "Theorem 1 says nothing where it is 1 or more.",
        {folder.name: table},
        networks_figure(folder / folder.name, drawn),
        f"Three networks of ten agents, regular ones as dots, poisoned as squares. {described}",
    )


def _networks() -> dict[str, Network]:
    return {title: networks.create(name) for name, title in NETWORK_TITLES.items()}


def write_page(
    folder: Path,
    command: str,
    title: str,
    caption: str,
    tables: Mapping[str, Table],
    pictures: Sequence[Path] = (),
    alt: str = "",
) -> Page:
    """Write a page that no runs of specs were trained for; tables are saved under their names."""
    return Page(
        name=folder.name,
        title=title,
        caption=caption,
        command=command,
        images=tuple(Image(file=path.name, alt=alt) for path in pictures),
        data=tuple(file for name, table in tables.items() for file in table.save(folder / name)),
        tables=tuple(tables.values()),
    ).save(folder)
