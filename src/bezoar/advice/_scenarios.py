"""What may happen on a network: who is poisoned, who holds which data, and what the attack is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from bezoar.networks import Network, place

#: Where poisoned agents may sit. Rounds try these in turn and then begin again.
PLACEMENTS = ("random", "worst", "random", "cut", "random", "degree", "random", "betweenness")

#: Partitions from alike to very different data, for users who do not know.
PARTITIONS = ("iid", "dirichlet:alpha=0.3", "by_class")

#: What is tried for each threat.
ATTACKS = {
    "labels": ("label_flip", "dynamic_label_flip", "random_labels"),
    "messages": ("sign_flip",),
}


@dataclass(frozen=True)
class Scenario:
    """One thing that may happen.

    Attributes:
        network: who is linked to whom, and who is poisoned.
        placement: how the places of the poisoned agents were chosen.
        partition: how the samples are divided among the agents.
        attack: what the poisoned agents do.
        seed: every random choice follows from it.
    """

    network: Network
    placement: str
    partition: str
    attack: str
    seed: int

    def fields(self) -> dict[str, Any]:
        """The fields of a spec that it decides."""
        return {name: value for name, value in vars(self).items() if name != "placement"}

    def document(self) -> dict[str, Any]:
        """As JSON holds it; of the network, who is poisoned."""
        told = {name: value for name, value in vars(self).items() if name != "network"}
        return {"poisoned": list(self.network.poisoned), **told}

    def __str__(self) -> str:
        many = len(self.network.poisoned)
        agents = "agent" if many == 1 else "agents"
        return f"{many} poisoned {agents} ({self.placement}), {self.partition}, {self.attack}"


def rounds(
    network: Network,
    poisoned: Sequence[int],
    partitions: Sequence[str],
    attacks: Sequence[str],
    seed: int,
) -> Iterator[list[list[Scenario]]]:
    """Scenarios to try one round after the other, for as long as there is time.

    Every round has all partitions. The first, in which all rules are tried, has one placement and
    one attack; the others have two placements and all attacks. Numbers and places of poisoned
    agents change from round to round; who is poisoned in the network plays no part. Every random
    choice follows from the seed.

    Yields:
        For each partition, the scenarios that share their data and can be trained together.
    """
    turns = count()
    for number in count():
        is_first = number == 0
        places = []
        for turn in islice(turns, 1 if is_first else 2):
            # The placements in turn, with the numbers in turn, the largest first.
            placement = PLACEMENTS[turn % len(PLACEMENTS)]
            many = poisoned[-1 - turn % len(poisoned)]
            places.append((placement, place(network, many, placement, seed + turn)))
        yield [
            [
                Scenario(placed, placement, partition, attack, seed + number)
                for placement, placed in places
                for attack in (attacks[:1] if is_first else attacks)
            ]
            for partition in partitions
        ]
