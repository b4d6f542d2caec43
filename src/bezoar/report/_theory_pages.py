"""The paper's tables, and its figures of networks, as folders like those of other figures."""

from fractions import Fraction
from pathlib import Path

from bezoar import networks, theory
from bezoar._numbers import number
from bezoar.experiments import NETWORKS
from bezoar.networks import Network
from bezoar.report._paper_figures import networks_figure
from bezoar.report._style import look
from bezoar.report._summary import Image, Summary, Table
from bezoar.report._tables import save_table
from bezoar.report._theory_figures import lower_bound_figure


def write_table_1(folder: Path, command: str) -> Summary:
    """Table I, with the values on the paper's three networks."""
    rates = {title: theory.contamination(network) for title, network in _paper_networks().items()}
    rows = []
    orders = [theory.contraction_orders(rate.delta_max) for rate in rates.values()]
    for columns in zip(*orders, strict=True):
        first = columns[0]
        stochastic = "doubly stochastic" if first.matrix == "mixing" else "row-stochastic"
        values = (number(entry.value) for entry in columns)
        rows.append((look(first.aggregator).label, first.order, stochastic, *values))
    shown = ", ".join(f"{title} {number(rate.delta_max)}" for title, rate in rates.items())
    return _write_table(
        folder,
        command,
        "Table I: orders of the contraction constant ρ",
        f"δ stands for δ_max: {shown}. Orders carry no constants; inf: the order says nothing at "
        "this rate.",
        Table(title="Orders of ρ", columns=("aggregator", "ρ", "M", *rates), rows=tuple(rows)),
    )


def write_table_2(folder: Path, command: str) -> Summary:
    """Table II, with the values on the paper's three networks."""
    rates = {title: theory.contamination(network) for title, network in _paper_networks().items()}
    orders = [theory.learning_error_orders(rate) for rate in rates.values()]
    rows = tuple(
        (columns[0].aggregator, columns[0].order, *(number(entry.value) for entry in columns))
        for columns in zip(*orders, strict=True)
    )
    return _write_table(
        folder,
        command,
        "Table II: orders of the learning error where A = Θ(ξ)",
        "In units of ξ². RAgg is the best majority-dominant rule. Only ratios of these mean "
        "anything.",
        Table(
            title="Orders of the learning error",
            columns=("aggregator", "learning error", *rates),
            rows=rows,
        ),
    )


def write_figure_9(folder: Path, command: str) -> Summary:
    """Figure 9: the two instances of Theorem 3 with four regular and four poisoned agents."""
    instances = theory.lower_bound_instances(4, 4)
    images = [
        lower_bound_figure(folder / f"{folder.name}.{ending}", instances)
        for ending in ("png", "pdf")
    ]
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
    summary = Summary(
        name=folder.name,
        title="Figure 9: two instances that look alike",
        caption=text,
        command=command,
        images=tuple(Image(file=path.name, alt=alt) for path in images),
    )
    summary.save(folder)
    return summary


def write_figure_10(folder: Path, command: str) -> Summary:
    """Figure 10: the paper's three networks, with what the theory says of them."""
    drawn = _paper_networks()
    rows = []
    texts = {}
    for title, network in drawn.items():
        rates = theory.contamination(network)
        uniform, mixing = (theory.connectivity(network, kind) for kind in theory.KINDS)
        delta, delta_max = (str(_fraction(rate)) for rate in (rates.delta, rates.delta_max))
        texts[title] = f"δ = {delta},  δ$_{{max}}$ = {delta_max}"
        rows.append(
            (
                title,
                str(len(network.edges)),
                ", ".join(map(str, network.poisoned)),
                "yes" if network.regular_is_connected else "no",
                delta,
                delta_max,
                number(uniform.lam),
                number(mixing.lam),
                number(theory.mixing_gap(network)),
            )
        )
    columns = (
        *("network", "edges", "poisoned", "connected", "δ", "δ_max"),
        *("λ uniform", "λ mixing", "λ'"),
    )
    images = networks_figure(
        folder / folder.name, {title: (drawn[title], text) for title, text in texts.items()}
    )
    described = " ".join(f"{row[0]}: {row[1]} links, agent {row[2]} is poisoned." for row in rows)
    alt = f"Three networks of ten agents, regular ones as dots, poisoned as squares. {described}"
    data = save_table(folder / folder.name, columns, rows)
    summary = Summary(
        name=folder.name,
        title="Figure 10: the paper's networks",
        caption="Regular agents are blue dots, poisoned ones red squares. Connected: whether the "
        "regular agents are, among themselves. λ is that of the uniform and of the mixing virtual "
        "matrix; Theorem 1 says nothing where it is 1 or more.",
        command=command,
        images=tuple(Image(file=path.name, alt=alt) for path in images),
        data=tuple(path.name for path in data),
        tables=(Table(title="The paper's networks", columns=columns, rows=tuple(rows)),),
    )
    summary.save(folder)
    return summary


def _paper_networks() -> dict[str, Network]:
    return {title: networks.create(name) for name, title in NETWORKS.items()}


def _fraction(rate: float) -> Fraction:
    """A rate of a small network as it is read: 1/9 rather than 0.1111."""
    return Fraction(rate).limit_denominator(1000)


def _write_table(folder: Path, command: str, title: str, caption: str, table: Table) -> Summary:
    data = save_table(folder / folder.name, table.columns, table.rows)
    summary = Summary(
        name=folder.name,
        title=title,
        caption=caption,
        command=command,
        data=tuple(path.name for path in data),
        tables=(table,),
    )
    summary.save(folder)
    return summary
