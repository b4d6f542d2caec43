"""The paper's experiments as specs."""

from dataclasses import dataclass

from bezoar.experiments._spec import Choice, RunSpec

#: The rules of the motivating example, in the order of its legend.
MOTIVATING_RULES = (
    "weighted_mean",
    "trimmed_mean",
    "faba",
    "centered_clipping",
    "clipped_gossip",
    "ios",
)


@dataclass(frozen=True)
class Cell:
    """One curve of a figure.

    Attributes:
        network: the panel it belongs to.
        rule: the aggregator's name, or ``"baseline"``.
        spec: the run behind it.
    """

    network: str
    rule: str
    spec: RunSpec


#: The clipping threshold for the paper's steps 0.1/√k. The paper gives none; its authors' code
#: clips at 0.03 with steps 0.03/√k, and what an agent moves in a step scales with the step.
CLIPPING = {"threshold": 0.1}

OPTIONS = {"centered_clipping": CLIPPING, "clipped_gossip": CLIPPING}


def figure_1(iterations: int = 500, every: int = 10, seed: int = 0) -> list[Cell]:
    """The motivating example: by-class MNIST on the two-castle and the fan network."""
    cells = []
    for network in ("two_castle", "fan"):
        common = RunSpec(
            network=Choice(name=network),
            partition=Choice(name="by_class"),
            iterations=iterations,
            every=every,
            metrics=("accuracy", "accuracy_worst", "consensus_error", "poison_share"),
            seed=seed,
        )
        for rule in MOTIVATING_RULES:
            aggregator = Choice(name=rule, options=OPTIONS.get(rule, {}))
            spec = common.model_copy(update={"aggregator": aggregator})
            cells.append(Cell(network, rule, spec))
        cells.append(Cell(network, "baseline", common.model_copy(update={"poisoned": ()})))
    return cells
