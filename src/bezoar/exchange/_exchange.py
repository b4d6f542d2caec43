"""From messages to next models, for all agents and runs at once."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._questions import asked_late
from bezoar.aggregators import (
    Aggregator,
    CoordinateAggregator,
    OutputLayer,
    WeightedAggregator,
)
from bezoar.exchange._coordinates import CoordinateExchange
from bezoar.exchange._dense import DenseExchange, Weighted, combine
from bezoar.exchange._gathered import GatheredExchange
from bezoar.exchange._links import Links, Tell
from bezoar.exchange._neighbourhoods import Neighbourhoods, by_size
from bezoar.exchange._sent import Sent, as_vectors
from bezoar.exchange._sparse import SparseExchange
from bezoar.exchange._tuning import DEFAULT, Map, Tuning
from bezoar.networks import Network, Shard, check_network


def is_dense(network: Network, tuning: Tuning = DEFAULT) -> bool:
    """Whether rules by weights are best applied to the whole of a network by matrix products."""
    inputs = network.adjacency.nnz + network.agents
    return bool(network.agents**2 <= tuning.dense_advantage * inputs)


class Exchange:
    """Rules applied at every agent of every run.

    How a run is computed depends on its rule and network: by one product over a dense network, by
    gathering neighbourhoods on a sparse one, or coordinate by coordinate.

    Args:
        rules: one rule a run.
        networks: one network a run, all with the same number of agents.
        layer: where the output layer lies in a message, for rules that look at it; without it,
            the rule's own ``head`` says where it is.
        device: where the messages will be.
        map: what goes through the pieces of work where there is much of it; like the builtin, or
            over several threads. Results do not depend on it.
        tuning: how the work is cut up.
        shard: if it is given, rules are applied at its members alone, always by gathering
            neighbourhoods. Messages are those of the members and, after them, of the halo;
            everything else is of the members.

    Raises:
        BezoarError: where a rule is impossible at some agent.
    """

    def __init__(
        self,
        rules: Sequence[Aggregator],
        networks: Sequence[Network],
        *,
        layer: OutputLayer | None = None,
        device: torch.device | str = "cpu",
        map: Map = map,
        tuning: Tuning = DEFAULT,
        shard: Shard | None = None,
    ) -> None:
        if len(rules) != len(networks):
            raise BezoarError(f"networks: expected {len(rules)}, one a rule, found {len(networks)}")
        if not networks:
            raise BezoarError("runs: at least one is needed, found none")
        sizes = {network.agents for network in networks}
        if len(sizes) != 1:
            raise BezoarError(
                f"networks: all must have the same number of agents, found {sorted(sizes)}"
            )
        if shard is not None and len(rules) > 1:
            raise BezoarError(f"runs: a shard takes one at a time, found {len(rules)}")
        for rule, network in dict.fromkeys(zip(rules, networks, strict=True)):
            rule.check(network)
            if (inner := auxiliary_of(rule)) is not None:
                inner.check(network)
        self.rules, self.networks = tuple(rules), tuple(networks)
        self._map, self._tuning, self._shard = map, tuning, shard
        self._heard = self._members = networks[0].agents
        if shard is not None:
            self._heard, self._members = len(shard.heard), len(shard.members)
        self._device = device = torch.device(device)
        together: dict[tuple[object, ...], dict[WeightedAggregator, list[int]]] = {}
        others: dict[tuple[Aggregator, Network], list[int]] = {}
        auxiliary: dict[tuple[CoordinateAggregator, Network], list[int]] = {}
        for run, (rule, network) in enumerate(zip(rules, networks, strict=True)):
            # Losses are those of single inputs, so these are gathered anyway.
            gathered = shard is not None or rule.samples_judged()
            dense = is_dense(network, tuning) and not gathered
            if isinstance(rule, WeightedAggregator) and dense:
                # Each rule may say where the output layer is, so those that read it are alone.
                alone = rule if rule.reads == "output_layer" or rule.sums_updates() else None
                kind = (rule.reads, rule.wiring(), rule.remembers(), alone)
                together.setdefault(kind, {}).setdefault(rule, []).append(run)
            else:
                others.setdefault((rule, network), []).append(run)
            if (inner := auxiliary_of(rule)) is not None:
                auxiliary.setdefault((inner, network), []).append(run)
        self._dense = [
            DenseExchange(same, networks, device, layer, tuning) for same in together.values()
        ]
        parts = partial(_parts, shard=shard, device=device)
        self._others = [
            one_by_one(
                *(runs, rule, self._heard, parts(rule, network)),
                *(layer, tuning, shard is None and is_dense(network, tuning)),
            )
            for (rule, network), runs in others.items()
        ]
        self._auxiliary = [
            CoordinateExchange(runs, rule, self._heard, parts(rule, network), tuning, dense=False)
            for (rule, network), runs in auxiliary.items()
        ]

    def __call__(
        self, sent: Sent | Tensor, tell: bool = False, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Aggregate and, if asked, tell who was listened to.

        Args:
            sent: what is sent; or ``[runs, W, D]`` messages alone.
            tell: whether to tell.
            out: contiguous ``[runs, W, D]``: where to write the next models. It must not be the
                messages, nor anything that a rule remembers.

        Returns:
            The next models ``[runs, W, D]``, and the weight that each agent gave to each of its
            inputs, as :attr:`links` has them. For rules that work coordinate by coordinate, the
            inputs that are kept in a coordinate share its weight, and this is the average over
            coordinates.
        """
        sent = sent if isinstance(sent, Sent) else Sent(sent)
        self._check(sent)
        sent = replace(sent, messages=sent.messages.contiguous())
        messages = sent.messages
        shape = (len(messages), self._members, messages.shape[-1])
        if out is None:
            out = messages.new_empty(shape)
        expected = (shape, messages.dtype, messages.device)
        if (out.shape, out.dtype, out.device) != expected or not out.is_contiguous():
            raise BezoarError(
                f"out: expected contiguous {list(shape)} of {messages.dtype} on {messages.device}, "
                f"found {list(out.shape)} of {out.dtype} on {out.device}"
            )
        weights = self.links.zeros() if tell else None
        with torch.inference_mode():  # thousands of small operations, a tenth faster
            late = self._tuning.ask_late
            if messages.device.type != "cpu" if late is None else late:
                with asked_late() as some:
                    self._apply(sent, out, weights, map)
                if some():
                    self._apply(sent, out, weights, self._map)
            else:
                self._apply(sent, out, weights, self._map)
        return out, weights

    @cached_property
    def links(self) -> Links:
        """Where weights of inputs are in what is told."""
        return Links(self.networks, self._device, self._shard)

    def _apply(self, sent: Sent, out: Tensor, weights: Tensor | None, map_much: Map) -> None:
        """Write the next models and weights, with ``map_much`` where there is much work."""
        tell: Tell | None = None
        if weights is not None:
            weights.zero_()
            tell = partial(self.links.add, weights)
        much = sent.messages.nbytes > self._tuning.piece_bytes
        if self._auxiliary:
            distances = self.links.zeros()
            for each in self._auxiliary:
                each.measure(sent, partial(self.links.add, distances), map_much if much else map)
            sent = replace(sent, distances=distances)
        weighted: list[Weighted] = []
        for dense in self._dense:
            here = dense.weigh(sent, tell, map_much)
            if len(here.parts) == 1:
                weighted.append(here)
            else:  # what comes after the messages differs
                combine([here], out, map_much, self._tuning)
        if weighted:
            combine(weighted, out, map_much, self._tuning)
        for other in self._others:
            other(sent, out, tell, map_much if much else map)

    def _check(self, sent: Sent) -> None:
        shape, agents = list(sent.messages.shape), self._heard
        if len(shape) != 3 or shape[1] != agents or shape[2] == 0:
            raise BezoarError(f"messages: expected shape [runs, {agents}, D], found {shape}")
        if shape[0] != len(self.networks):
            raise BezoarError(
                f"messages: {len(self.networks)} networks need as many runs, found {shape[0]}"
            )
        if not sent.messages.is_floating_point():
            raise BezoarError(f"messages: expected floating point, found {sent.messages.dtype}")
        for rule in self.rules:
            for name in rule.remembers():
                if name not in sent.remembered:
                    raise BezoarError(f"remembered: {rule.name} needs {name!r}, found nothing")
            if rule.samples_judged() and sent.judge is None:
                raise BezoarError(
                    f"losses: {rule.name} needs those of every agent's inputs on samples of its "
                    "own, which are known in training; found nothing"
                )
            if rule.sums_updates() and sent.sums is None:
                raise BezoarError(
                    f"aggregator {rule.name}: it goes by what each neighbour changed in all "
                    "iterations, which is kept in training only"
                )
        if sent.false is not None:
            sent.false.check(self.networks, shape[2])


def one_by_one(
    runs: Sequence[int],
    rule: Aggregator,
    agents: int,
    parts: Sequence[Neighbourhoods],
    layer: OutputLayer | None,
    tuning: Tuning,
    dense: bool = False,
) -> GatheredExchange:
    """The way to apply a rule neighbourhood by neighbourhood."""
    if isinstance(rule, WeightedAggregator):
        return SparseExchange(runs, rule, agents, parts, tuning, layer)
    if isinstance(rule, CoordinateAggregator):
        return CoordinateExchange(runs, rule, agents, parts, tuning, dense)
    raise BezoarError(f"aggregator: expected a rule by weights or by coordinates, found {rule!r}")


def auxiliary_of(rule: Aggregator) -> CoordinateAggregator | None:
    """The rule whose output another one measures its inputs by, if it does.

    Raises:
        BezoarError: where it cannot be measured by such a rule.
    """
    inner = rule.auxiliary()
    if inner is None:
        if getattr(rule, "reads", "") == "distances":
            raise BezoarError(
                f"aggregator {rule.name}: it reads distances to the output of another rule, but "
                "its 'auxiliary' names none"
            )
        return None
    if not isinstance(inner, CoordinateAggregator) or inner.reads != "values" or inner.before:
        raise BezoarError(
            f"aggregator {rule.name}: its 'auxiliary' must be a rule by coordinates that goes by "
            f"values alone, found {inner!r}"
        )
    return inner


def _parts(
    rule: Aggregator, network: Network, shard: Shard | None, device: torch.device
) -> list[Neighbourhoods]:
    return [part.to(device) for part in by_size(rule, network, shard)]


def exchange_once(rule: Aggregator, messages: ArrayLike | Tensor, network: Network) -> Tensor:
    """A rule applied to messages ``[..., W, D]`` at every agent of one network."""
    messages = as_vectors("messages", messages)
    network = check_network(network)
    if messages.ndim < 2 or messages.shape[-2] != network.agents:
        raise BezoarError(
            f"messages: expected shape [..., {network.agents}, D], found {list(messages.shape)}"
        )
    if messages.numel() == 0:  # no runs
        rule.check(network)
        return torch.empty_like(messages)
    flat = messages.reshape(-1, *messages.shape[-2:]).contiguous()
    exchange = Exchange([rule] * len(flat), [network] * len(flat), device=messages.device)
    models, _ = exchange(flat)
    return models.view(messages.shape)
