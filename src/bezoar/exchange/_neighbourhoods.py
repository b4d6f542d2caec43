"""Who hears whom, laid out in slots: what every aggregator needs to know of a network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn.functional import pad

from bezoar._arrays import Ints
from bezoar.aggregators import Aggregator, Neighbourhood, OutputLayers
from bezoar.exchange._sent import Sent
from bezoar.networks import Network, Shard


@dataclass(frozen=True)
class Neighbourhoods:
    """The inputs of some agents in ``networks`` networks side by side.

    Slot 0 is the agent's own message, the others its neighbours' in ascending order.

    Attributes:
        index: ``[networks, n, slots]`` the agent behind each slot; padding repeats the own. In a
            shard: the row of its messages.
        mask: ``[networks, n, slots]`` false at padding.
        mixing: ``[networks, n, slots]`` the agent's row of the mixing matrix, float64.
        estimate: ``[networks, n]`` the estimated number of poisoned inputs.
        first_link: ``[networks, n]`` how many inputs the agents before have, all in all; in a shard
            those before among its members.
        largest_estimate: the largest estimate, on the host.
        numbers: ``[networks, n, slots]`` the agent behind each slot where that is not the index.
    """

    index: Tensor
    mask: Tensor
    mixing: Tensor
    estimate: Tensor
    first_link: Tensor
    largest_estimate: int
    numbers: Tensor | None = None

    @property
    def agents(self) -> int:
        """The number of agents ``n``."""
        return self.index.shape[1]

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self.index.shape[-1]

    @cached_property
    def on_host(self) -> Ints:
        """The index on the host; fetched once."""
        return self.index.cpu().numpy()

    def some(self, most: int) -> "list[Neighbourhoods]":
        """The same in parts of at most so many agents."""
        held = self.tensors()
        parts = zip(*(tensor.split(most, dim=1) for tensor in held.values()), strict=True)
        return [replace(self, **dict(zip(held, part, strict=True))) for part in parts]

    def to(self, device: torch.device) -> "Neighbourhoods":
        """The same on another device."""
        return replace(self, **{name: each.to(device) for name, each in self.tensors().items()})

    def tensors(self) -> dict[str, Any]:
        """All that are here, by their names."""
        return {name: each for name, each in vars(self).items() if isinstance(each, Tensor)}

    def of_links(self, values: Tensor, runs: Sequence[int]) -> Tensor:
        """``[runs, n, slots]`` what values of all links say of these slots; anything at padding.

        Args:
            values: ``[all runs, links]``, as :class:`bezoar.exchange.Links` has them.
            runs: the numbers of the runs.
        """
        slots = torch.arange(self.slots, device=values.device)
        places = (self.first_link.unsqueeze(-1) + slots).expand(len(runs), -1, -1)
        return values[list(runs)].gather(1, places.flatten(1)).view(places.shape)

    def seen(
        self,
        sent: Sent,
        finite: Tensor | None,
        remembered: Sequence[str] = (),
        gram: Tensor | None = None,
        output_layers: OutputLayers | None = None,
        losses: Tensor | None = None,
        distances: Tensor | None = None,
    ) -> Neighbourhood:
        """What the agents have after the exchange, for a rule.

        Args:
            sent: what is sent.
            finite: ``[..., m]`` whether there is something finite in each slot; ``None`` where the
                rule does not ask.
            remembered: the names of what follows the inputs.
            gram: ``[..., m, m]`` inner products, if the rule reads them; they are written over.
            output_layers: the inputs' output layers, if the rule reads them.
            losses: ``[..., m]`` the losses of the inputs, if the rule judges by them.
            distances: ``[..., inputs]`` squared distances of the inputs to the output of its
                auxiliary rule, if any.
        """
        more, mask, mixing = (0, len(remembered)), self.mask, self.mixing
        index = self.index if self.numbers is None else self.numbers
        if finite is None:
            finite = pad(mask, more, value=True)
        if distances is not None:
            finite = pad(finite, more, value=True)
            distances = pad(distances, more, value=torch.inf)
        if remembered:
            mask, mixing, index = pad(mask, more), pad(mixing, more), pad(index, more)
        if gram is not None:
            gram.masked_fill_(~(finite.unsqueeze(-1) & finite.unsqueeze(-2)), 0)
        return Neighbourhood(
            mask=mask,
            finite=finite,
            mixing=mixing,
            estimate=self.estimate,
            largest_estimate=self.largest_estimate,
            index=index,
            gram=gram,
            output_layers=output_layers,
            losses=losses,
            distances=distances,
            remembered={name: self.slots + place for place, name in enumerate(remembered)},
            iteration=sent.iteration,
            progress=sent.progress,
        )


def padded(rules: Sequence[Aggregator], networks: Sequence[Network]) -> Neighbourhoods:
    """The inputs of all agents in each run, padded to the largest neighbourhood.

    If they are the same in all runs, they are laid out once.

    Args:
        rules: one rule a run, all with the same mixing matrix.
        networks: one network a run, all of one size.
    """
    estimates = [tuple(r.estimates(n).tolist()) for r, n in zip(rules, networks, strict=True)]
    runs = tuple(zip(networks, estimates, strict=True))
    make = _padded if all(map(_returns, networks)) else _padded.__wrapped__
    return make(runs if len(set(runs)) > 1 else runs[:1], rules[0].wiring()[0])


def _returns(network: Network) -> bool:
    """Whether a network is worth remembering: what silent links leave of one rarely comes again."""
    return network is network.whole


@lru_cache(maxsize=64)
def _padded(runs: tuple[tuple[Network, tuple[int, ...]], ...], mixing: str) -> Neighbourhoods:
    slots = 1 + max(int(network.degrees.max()) for network, _ in runs)
    parts = []
    for network, estimates in runs:
        everyone = np.arange(network.agents)
        matrix = network.mixing(mixing)
        parts.append(_lay_out(network, matrix, np.array(estimates), everyone, slots))
    together: dict[str, Any] = {
        name: torch.cat([getattr(part, name) for part in parts]) for name in parts[0].tensors()
    }
    largest = max(part.largest_estimate for part in parts)
    return Neighbourhoods(**together, largest_estimate=largest)


def by_size(
    rule: Aggregator, network: Network, shard: Shard | None = None
) -> tuple[Neighbourhoods, ...]:
    """The inputs of all agents, those with as many inputs and the same estimate together.

    So nothing is padded, and an agent is computed just as it would be alone. Of rules without an
    estimate only the number of inputs counts. If a shard is given, they are the inputs of its
    members, as rows of the messages that are there.
    """
    estimates, mixing = rule.estimates(network) * rule.uses_estimate(), rule.wiring()[0]
    if shard is None:
        make = _by_size if _returns(network) else _by_size.__wrapped__
        return make(network, mixing, tuple(estimates.tolist()))
    row = np.zeros(network.agents, dtype=np.int64)
    row[shard.heard] = np.arange(len(shard.heard))
    parts = _alike(network, mixing, estimates, shard.members)
    sizes = network.degrees[shard.members] + 1
    first_link = np.zeros(network.agents, dtype=np.int64)
    first_link[shard.members] = np.cumsum(sizes) - sizes
    return tuple(
        replace(
            part,
            index=torch.from_numpy(row[part.on_host]),
            first_link=torch.from_numpy(first_link[part.on_host[..., 0]]),
            numbers=part.index,
        )
        for part in parts
    )


@lru_cache(maxsize=64)
def _by_size(
    network: Network, mixing: str, estimates: tuple[int, ...]
) -> tuple[Neighbourhoods, ...]:
    return _alike(network, mixing, np.array(estimates), np.arange(network.agents))


def _alike(
    network: Network, mixing: str, estimates: Ints, agents: Ints
) -> tuple[Neighbourhoods, ...]:
    """The inputs of some agents, those with as many inputs and the same estimate together."""
    matrix = network.mixing(mixing)
    sizes = np.stack([network.degrees + 1, estimates])[:, agents]
    kinds, which = np.unique(sizes, axis=1, return_inverse=True)
    return tuple(
        _lay_out(network, matrix, estimates, agents[which.ravel() == kind], int(slots))
        for kind, slots in enumerate(kinds[0])
    )


def _lay_out(
    network: Network, mixing: csr_array, estimate: Ints, agents: Ints, slots: int
) -> Neighbourhoods:
    """The inputs of some agents of one network."""
    index = np.repeat(agents[:, None], slots, axis=1)
    mask = np.arange(slots) <= network.degrees[agents][:, None]
    neighbours = mask.copy()
    neighbours[:, 0] = False
    index[neighbours] = network.adjacency[agents].indices
    weights = np.zeros(index.shape)
    rows = mixing[agents].tocoo()
    weights[neighbours] = rows.data[rows.col != agents[rows.row]]
    weights[:, 0] = mixing.diagonal()[agents]
    first = np.cumsum(network.degrees + 1)[agents] - network.degrees[agents] - 1
    arrays = (index, mask, weights, estimate[agents], first)
    who, there, mixed, expected, links = (torch.from_numpy(a).unsqueeze(0) for a in arrays)
    largest = int(estimate[agents].max())
    return Neighbourhoods(who, there, mixed, expected, links, largest)
