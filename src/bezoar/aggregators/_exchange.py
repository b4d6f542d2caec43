"""From messages to next models, for all agents and runs at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.aggregators._base import Aggregator, CoordinateAggregator, WeightedAggregator
from bezoar.aggregators._by_rank import Ranking
from bezoar.aggregators._dense import MATRICES, DenseExchange
from bezoar.aggregators._gathered import combine_gathered
from bezoar.aggregators._gram import COLUMNS, Map, spans
from bezoar.aggregators._seats import Seats, seat
from bezoar.networks import Network

#: Bytes of gathered messages held at a time.
CHUNK_BYTES = 16 << 20

#: One matrix product over the whole network is worth this many times the work of gathering.
DENSE_ADVANTAGE = 16


@dataclass(frozen=True)
class _Piece:
    """A piece of work.

    Attributes:
        runs: in which runs.
        seats: at which seats.
        span: for which coordinates.
        ranking: what combines the inputs, for rules that work coordinate by coordinate.
    """

    runs: slice | Tensor
    seats: Seats
    span: slice
    ranking: Ranking | None

    @property
    def rows(self) -> tuple[slice | Tensor, Tensor]:
        """The runs and agents, as an index."""
        runs = self.runs if isinstance(self.runs, slice) else self.runs.unsqueeze(-1)
        return runs, self.seats.agents

    @cached_property
    def place(self) -> slice | None:
        """The agents, if these and the runs are numbered without gaps."""
        if not (isinstance(self.runs, slice) and self.seats.consecutive):
            return None
        first = int(self.seats.agents[0])
        return slice(first, first + len(self.seats.agents))


def is_dense(rule: Aggregator, network: Network) -> bool:
    """Whether a rule is best applied to the whole of a network by matrix products."""
    links = network.adjacency.nnz + network.agents
    return isinstance(rule, WeightedAggregator) and bool(
        network.agents**2 <= DENSE_ADVANTAGE * links
    )


class Exchange:
    """A rule applied on one network for all runs, or on one network a run.

    Args:
        rule: the aggregator; or one a run, where all are dense on their networks.
        networks: one network, or as many as there are runs, all with the same number of agents.
        device: where the messages will be.
        map: what goes through the pieces of work where there is much of it; like the builtin, or
            over several threads. Results do not depend on it.

    Raises:
        BezoarError: where a rule is impossible at some agent.
    """

    def __init__(
        self,
        rule: Aggregator | Sequence[Aggregator],
        networks: Sequence[Network],
        device: torch.device | str = "cpu",
        map: Map = map,
    ) -> None:
        sizes = {network.agents for network in networks}
        if len(sizes) != 1:
            raise BezoarError(
                f"networks: all must have the same number of agents, found {sorted(sizes)}"
            )
        rules = [rule] * len(networks) if isinstance(rule, Aggregator) else list(rule)
        for each, network in dict.fromkeys(zip(rules, networks, strict=True)):
            each.check(network)
        self.rule = rules[0]
        self.agents = networks[0].agents
        self._map = map
        self._cut: tuple[Any, list[_Piece]] | None = None
        self.networks = tuple(networks)
        if len(set(networks)) == 1 and len(set(rules)) == 1:
            rules, self.networks = rules[:1], self.networks[:1]
        weighted = [
            each
            for each, network in zip(rules, self.networks, strict=True)
            if isinstance(each, WeightedAggregator) and is_dense(each, network)
        ]
        self._dense: DenseExchange | None = None
        if len(weighted) == len(rules):
            self._dense = DenseExchange(weighted, self.networks, torch.device(device), map)
        elif len(set(rules)) > 1:
            raise BezoarError("rule: several can be applied at once only where all are dense")

    def __call__(self, messages: Tensor, head: Tensor | None = None) -> Tensor:
        """Aggregate.

        Args:
            messages: ``[..., W, D]``; with several networks ``[networks, W, D]``.
            head: ``[..., W, classes, features]`` the messages' output layers, for the rules that
                look at them; without it, the rule's own ``head`` says where they are.

        Returns:
            ``[..., W, D]`` the next models.
        """
        return self.step(messages, head)[0]

    def step(
        self,
        messages: Tensor,
        head: Tensor | None = None,
        share: bool = False,
        out: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Aggregate and, if asked, tell how much the poisoned agents were listened to.

        Args:
            messages: as for calling.
            head: as for calling.
            share: whether to tell.
            out: contiguous, of the messages' shape: where to write the next models.

        Returns:
            The next models ``[..., W, D]``, and ``[..., W]`` the share of weight that each agent
            gave to poisoned ones. For rules that work coordinate by coordinate that is the
            average over coordinates.
        """
        self._check_messages(messages)
        batch = messages.shape[:-2]
        flat = messages.detach().reshape(-1, *messages.shape[-2:])
        if len(self.networks) > 1 and len(self.networks) != len(flat):
            raise BezoarError(
                f"messages: {len(self.networks)} networks need as many runs, found {len(flat)}"
            )
        if head is not None:
            head = head.detach().reshape(-1, *head.shape[-3:])
        if out is None:
            out = torch.empty_like(messages, memory_format=torch.contiguous_format)
        with torch.inference_mode():  # thousands of small operations, a tenth faster
            shares = self._apply(flat, head, share, out.view(flat.shape))
        return out, None if shares is None else shares.clone().view(*batch, -1)

    def _apply(
        self, messages: Tensor, head: Tensor | None, share: bool, models: Tensor
    ) -> Tensor | None:
        if self._dense is not None:
            return self._dense.step(messages, head, share, models)

        pieces = self._pieces(messages)
        much = messages.numel() * messages.element_size() > CHUNK_BYTES

        def work(piece: _Piece) -> Tensor | None:
            sent = messages[piece.runs][..., piece.span]
            part = head[piece.runs] if head is not None else None
            if piece.place is not None:
                out = models[piece.runs, piece.place, piece.span]
                return self._at_seats(piece, sent, part, share, out)
            out = models.new_empty(len(sent), len(piece.seats.agents), sent.shape[-1])
            given = self._at_seats(piece, sent, part, share, out)
            models[*piece.rows, piece.span] = out
            return given

        results = (self._map if much else map)(work, pieces)
        shares = messages.new_zeros(messages.shape[:-1], dtype=torch.float64) if share else None
        for piece, given in zip(pieces, results, strict=True):
            if shares is not None and given is not None:
                width = len(range(messages.shape[-1])[piece.span])
                shares[piece.rows] += given * (width / messages.shape[-1])
        return shares

    def _at_seats(
        self, piece: _Piece, messages: Tensor, head: Tensor | None, share: bool, out: Tensor
    ) -> Tensor | None:
        if piece.ranking is not None:
            return piece.ranking.combine(messages, share, out)
        assert isinstance(self.rule, WeightedAggregator)
        return combine_gathered(self.rule, messages, head, piece.seats, share, out)

    def _pieces(self, messages: Tensor) -> list[_Piece]:
        """The pieces of the work, kept for messages of the same kind."""
        kind = (messages.shape, messages.dtype, messages.device)
        if self._cut is None or self._cut[0] != kind:
            self._cut = (kind, list(self._cut_up(messages)))
        return self._cut[1]

    def _cut_up(self, messages: Tensor) -> Iterator[_Piece]:
        """Runs, seats and coordinates whose inputs fit into a chunk of memory."""
        length = messages.shape[-1]
        # A rule that works coordinate by coordinate may take them in turns.
        by_rank = isinstance(self.rule, CoordinateAggregator)
        columns = spans(length) if by_rank else [slice(length)]
        held = min(length, COLUMNS) if by_rank else length
        for network in dict.fromkeys(self.networks):
            runs: slice | Tensor = slice(None)
            count = len(messages)
            if len(self.networks) > 1:
                same = [run for run, other in enumerate(self.networks) if other is network]
                together = same == list(range(same[0], same[-1] + 1))
                runs = slice(same[0], same[-1] + 1) if together else torch.tensor(same)
                count = len(same)
            for seats in seat((network,), *self.rule.wiring(), together=False):
                # Inputs, and matrices like their Gram matrix: the larger of the two counts.
                per_slot = max(held * messages.element_size(), 8 * MATRICES * seats.slots)
                some = max(1, CHUNK_BYTES // (count * per_slot * seats.slots))
                for start in range(0, len(seats.agents), some):
                    here = seats.some(start, start + some).to(messages.device)
                    ranking = None
                    if isinstance(self.rule, CoordinateAggregator):
                        ranking = Ranking(self.rule, here, count, self.agents)
                    yield from (_Piece(runs, here, span, ranking) for span in columns)

    def _check_messages(self, messages: Tensor) -> None:
        if messages.ndim < 2 or messages.shape[-2] != self.agents:
            raise BezoarError(
                f"messages: expected shape [..., {self.agents}, D], found {list(messages.shape)}"
            )
        if not messages.is_floating_point():
            raise BezoarError(f"messages: expected floating point, found {messages.dtype}")
