"""Networks as pages: what the theory says of them, and the samples of their agents."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bezoar import theory
from bezoar._arrays import Ints
from bezoar._errors import BezoarError
from bezoar._numbers import count, joined, listed, number
from bezoar.experiments import RunSpec, StoredRun, dataset_of, network_of_run, partition_of, spec_of
from bezoar.networks import Network
from bezoar.report._page import Page, Panel, Table
from bezoar.report._style import look
from bezoar.report._tables import notes_about, told_apart

#: What :func:`bezoar.theory.overview` says of a network, and what gives a rule's label.
Overview = dict[str, Any]
Label = Callable[[str], str]

#: The quantities of worst placements, as the paper writes them.
QUANTITIES = {"delta_max": "δ_max", "lambda uniform": "λ uniform", "lambda mixing": "λ mixing"}

#: The most agents and classes in a table.
ROWS, CLASSES = 60, 30

#: The mixing matrix of rules that do not name another.
MIXING = "metropolis"


def describe(network: Network) -> str:
    """The numbers of agents and edges, and who is poisoned."""
    agents, edges = count(network.agents, "agent"), count(network.adjacency.nnz // 2, "edge")
    return f"{agents}, {edges}; poisoned: {listed(network.named(network.poisoned))}"


def theory_page(
    title: str, network: Network, found: Overview, notes: Sequence[str] = (), label: Label = str
) -> Page:
    """Which theorem applies to a network, Tables I and II for it, and the worst placement.

    The ``notes`` are further sentences for the caption.
    """
    agent = found["delta_max_agent"]
    inputs = f"{network.poisoned_inputs[agent]} of {network.degrees[agent] + 1} inputs"
    pieces = found["connectivity"]["uniform"]["components"]
    apart = f"The regular agents fall into {pieces} pieces: no robust rule can join them."
    sentences = [
        f"δ = {number(found['delta'])} of all agents; δ_max = {number(found['delta_max'])} "
        f"(agent {network.names[agent]}: {inputs}).",
        *([apart] if pieces > 1 else []),
        *notes,
        f"In one sentence: {found['verdict']}",
    ]
    tables = [
        _theorems(found, label),
        _table_1(found, label),
        _table_2(found),
        _worst(found, network),
    ]
    return Page(
        name="theory",
        title=title,
        caption="\n".join(sentences),
        tables=tuple(table for table in tables if table.rows),
        panels=(Panel(title, network=network),),
    )


def network_pages(runs: Sequence[StoredRun]) -> list[Page]:
    """What the theory says of every network, for each mixing matrix in use.

    A network in which nobody is poisoned is left out if it is there with poisoned agents, too.
    """
    specs = list(map(spec_of, runs))
    texts = told_apart({spec.network: str(spec.network) for spec in specs})
    found: dict[tuple[str, str, Network], None] = {}
    unreadable: dict[str, Page] = {}
    for run, spec in zip(runs, specs, strict=True):
        title, mixing = texts[spec.network], str(spec.aggregator.options.get("mixing", MIXING))
        try:
            found[title, mixing, network_of_run(run)] = None
        except BezoarError as error:
            unreadable[title] = Page(name="theory", title=title, caption=str(error))
    poisoned = {title for title, _, network in found if network.poisoned}
    pages = [
        theory_page(
            title if mixing == MIXING else f"{title}, {mixing} mixing matrix",
            network,
            theory.overview(network, mixing),
            label=lambda rule: look(rule).label,
        )
        for title, mixing, network in found
        if network.poisoned or title not in poisoned
    ]
    return [*pages, *unreadable.values()]


def _theorems(found: Overview, label: Label) -> Table:
    rows = []
    for kind, connected in found["connectivity"].items():
        rules = [label(rule) for rule, matrix in theory.MATRIX_OF.items() if matrix == kind]
        guarantee = "none: λ ≥ 1"
        if connected["lambda_below_one"]:
            guarantee = f"Theorem 1 where ρ < {connected['room_for_rho']:.3g}"
        values = (_readable(connected[name]) for name in ("lambda", "beta"))
        rows.append((", ".join(rules), guarantee, f"λ {kind}", *values))
    mean = found["weighted_mean"]
    guarantee = "none: λ' ≥ 1"
    if mean["lambda_prime_below_one"]:
        times = mean["iterations_over_smoothness_squared"]
        guarantee = "Theorem 2 where K ≥ " + (f"{times:.3g} L²" if times > 1 else "L²")
    rows.append((label("weighted_mean"), guarantee, "λ'", _readable(mean["lambda_prime"]), "–"))
    title = "Which theorem applies: Theorem 1 needs λ < 1 and ρ < (1−λ)/4, Theorem 2 needs λ' < 1"
    return Table.of(title, ("rules", "guarantee", "constant", "value", "β"), rows)


def _table_1(found: Overview, label: Label) -> Table:
    rows = []
    for row in found["table_1"]:
        room = _readable(row["room"]) if row["room"] else "none"
        rows.append((label(row["aggregator"]), row["order"], _readable(row["value"]), room))
    title = "Table I: orders of ρ at this δ_max, without constants"
    return Table.of(title, ("rule", "order", "value", "room left"), rows)


def _table_2(found: Overview) -> Table:
    rows = []
    for row in found["table_2"]:
        name = "best majority-dominant" if row["aggregator"] == "RAgg" else row["aggregator"]
        rows.append((name, row["order"], f"{_readable(row['value'])} ξ²"))
    title = "Table II: orders of the learning error where A = Θ(ξ)"
    return Table.of(title, ("rule", "order", "value"), rows)


def _worst(found: Overview, network: Network) -> Table:
    worst, rows = found["worst_placement"], []
    for row in worst:
        bound = "exact" if row["exact"] else _readable(row["bound"])
        values = (_readable(row["now"]), _readable(row["value"]), bound)
        rows.append((QUANTITIES[row["quantity"]], *values, listed(network.named(row["poisoned"]))))
    agents = count(worst[0]["agents"], "poisoned agent") if worst else ""
    columns = ("quantity", "now", "worst", "at most", "poisoned there")
    return Table.of(f"Worst placement of {agents}", columns, rows)


def _readable(value: float) -> str:
    """A number in few characters; zero where nothing but rounding is left."""
    return "∞" if value == float("inf") else number(value if abs(value) > 1e-12 else 0.0)


def samples_of(spec: RunSpec, agents: int) -> Ints:
    """``[agents, classes]`` how many training samples of each class every agent has."""
    dataset = dataset_of(spec)
    return partition_of(spec, agents).holdings(dataset.train_labels, dataset.classes)


def network_page(spec: RunSpec, network: Network) -> Page:
    """A network, and the partition of the samples over its agents."""
    connected = "connected" if network.regular_is_connected else "not connected"
    title = f"Partition: {_partition(spec)}, samples of each class"
    columns = {"links": network.degrees.tolist(), "P_w": network.poisoned_inputs.tolist()}
    samples = samples_of(spec, network.agents)
    sentences = (
        f"The regular agents are {connected} among themselves.",
        "■ marks poisoned agents; P_w is the number of poisoned agents among an agent's inputs, "
        "itself included.",
        *notes_about(spec.dataset, dataset_of(spec).note, spec.network, network.note),
    )
    return Page(
        name="network",
        title=f"{spec.network}: {describe(network)}",
        caption=" ".join(sentences),
        tables=(_table(title, samples, network, network.poisoned, columns),),
    )


def partition_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """A table for each partition of some samples over some agents; without those unknown here."""
    alike: dict[object, list[tuple[RunSpec, Network]]] = {}
    for run in runs:
        with suppress(BezoarError):  # the network's own page says what is wrong
            spec, network = spec_of(run), network_of_run(run)
            same = (spec.dataset, spec.samples, spec.partition, network.names)
            alike.setdefault(same, []).append((spec, network))
    tables = []
    for several in alike.values():
        with suppress(BezoarError):
            tables.append(_table_of_runs(several))
    return tables


def _table_of_runs(runs: Sequence[tuple[RunSpec, Network]]) -> Table:
    first, network = min(runs, key=lambda pair: pair[0].seed)
    title = f"{_partition(first)}, {network.agents} agents"
    if len({spec.seed for spec, _ in runs}) > 1:
        title += f", seed {first.seed}"
    places: list[dict[str, None]] = [{} for _ in range(network.agents)]
    for spec, where in runs:
        for agent in where.poisoned:
            places[agent][str(spec.network)] = None
    counts = samples_of(first, network.agents)
    columns = {"all": counts.sum(axis=1).tolist(), "poisoned on": [*map(", ".join, places)]}
    poisoned = [agent for agent, place in enumerate(places) if place]
    return _table(title, counts, network, poisoned, columns)


def _partition(spec: RunSpec) -> str:
    """The partition, and of which samples it is."""
    samples = f"{spec.samples:,} samples of " if spec.samples else ""
    return f"{spec.partition} of {samples}{spec.dataset}"


def _table(
    title: str,
    counts: Ints,
    network: Network,
    poisoned: Collection[int],
    more: Mapping[str, Sequence[object]],
) -> Table:
    """A row for each agent: its samples of each class, and the values of ``more`` columns."""
    agents, classes = counts.shape
    cut = [
        f"{most} of {there} {what}"
        for most, there, what in ((ROWS, agents, "agents"), (CLASSES, classes, "classes"))
        if there > most
    ]
    if cut:
        title += f" (the first {joined(cut)})"
    rows = []
    for agent, held in enumerate(counts[:ROWS, :CLASSES].tolist()):
        name = f"■ {network.names[agent]}" if agent in poisoned else network.names[agent]
        further = (str(values[agent]) for values in more.values())
        rows.append((name, *(str(count) if count else "·" for count in held), *further))
    shown = min(classes, CLASSES)
    return Table.of(title, ("agent", *map(str, range(shown)), *more), rows, shaded=shown)
