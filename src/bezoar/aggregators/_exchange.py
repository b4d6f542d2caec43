"""From messages to next models: gathering neighbourhoods and applying a rule, for all at once."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.aggregators._base import Aggregator, CoordinateAggregator, WeightedAggregator
from bezoar.aggregators._gram import SAMPLE, SPAN, Map, central_input, gram, spans
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._ranks import sort_ends
from bezoar.aggregators._seats import Seats, seat
from bezoar.networks import Network

#: Bytes of gathered messages held at a time.
CHUNK_BYTES = 16 << 20

#: Bytes of gathered messages sorted at a time; a block of them stays in the cache.
RANK_BYTES = 1 << 20

#: One matrix product over the whole network is worth this many times the work of gathering.
DENSE_ADVANTAGE = 16


class Exchange:
    """A rule applied on one network for all runs, or on one network a run.

    Args:
        rule: the aggregator.
        networks: one network, or as many as there are runs, all with the same number of agents.
        device: where the messages will be.
        map: what goes through the pieces of work where there is much of it; like the builtin, or
            over several threads. Results do not depend on it.

    Raises:
        BezoarError: where the rule is impossible at some agent.
    """

    def __init__(
        self,
        rule: Aggregator,
        networks: Sequence[Network],
        device: torch.device | str = "cpu",
        map: Map = map,
    ) -> None:
        sizes = {network.agents for network in networks}
        if len(sizes) != 1:
            raise BezoarError(
                f"networks: all must have the same number of agents, found {sorted(sizes)}"
            )
        for network in set(networks):
            rule.check(network)
        self.rule = rule
        self._map = map
        self.networks = tuple(networks)
        if len(set(networks)) == 1:
            self.networks = self.networks[:1]
        self.device = torch.device(device)
        self.agents = networks[0].agents

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
        flat = messages.reshape(-1, *messages.shape[-2:])
        if len(self.networks) > 1 and len(self.networks) != len(flat):
            raise BezoarError(
                f"messages: {len(self.networks)} networks need as many runs, found {len(flat)}"
            )
        if head is not None:
            head = head.reshape(-1, *head.shape[-3:])
        elif isinstance(self.rule, WeightedAggregator) and self.rule.reads == "head":
            head = self._head_of(flat)
        if out is None:
            out = torch.empty_like(messages, memory_format=torch.contiguous_format)
        shares = self._apply(flat, head, share, out.view(flat.shape))
        return out, None if shares is None else shares.view(*batch, -1)

    def _apply(
        self, messages: Tensor, head: Tensor | None, share: bool, models: Tensor
    ) -> Tensor | None:
        if isinstance(self.rule, WeightedAggregator) and self._dense:
            return self._apply_dense(self.rule, messages, head, share, models)
        shares = messages.new_empty(messages.shape[:-1], dtype=torch.float64) if share else None

        def work(piece: tuple[slice | Tensor, Seats]) -> None:
            runs, seats = piece
            rows = runs if isinstance(runs, slice) else runs.unsqueeze(-1)
            part = head[runs] if head is not None else None
            new, given = self._at_seats(messages[runs], part, seats, share)
            models[rows, seats.agents] = new
            if shares is not None and given is not None:
                shares[rows, seats.agents] = given

        much = messages.numel() * messages.element_size() > CHUNK_BYTES
        list((self._map if much else map)(work, self._pieces(messages)))
        return shares

    def _at_seats(
        self, messages: Tensor, head: Tensor | None, seats: Seats, share: bool
    ) -> tuple[Tensor, Tensor | None]:
        if isinstance(self.rule, CoordinateAggregator):
            return _combine_ranks(self.rule, messages, seats, share)
        assert isinstance(self.rule, WeightedAggregator)
        return _combine_gathered(self.rule, messages, head, seats, share)

    # -- small dense networks: one Gram matrix and one product for the whole network

    @cached_property
    def _dense(self) -> bool:
        links = max(network.adjacency.nnz for network in self.networks)
        return bool(self.agents**2 <= DENSE_ADVANTAGE * (links + self.agents))

    @cached_property
    def _seats(self) -> Seats:
        [seats] = seat(self.networks, *self.rule.wiring())
        return seats.to(self.device)

    @cached_property
    def _pairs(self) -> Tensor:
        """``[networks, W·m·m]`` where each neighbourhood's Gram entries are in the network's."""
        index = self._seats.index
        return (index.unsqueeze(-1) * self.agents + index.unsqueeze(-2)).flatten(1)

    @cached_property
    def _constant(self) -> Tensor:
        """``[networks, W, m]`` the weights of a rule that depends on nothing but the network."""
        assert isinstance(self.rule, WeightedAggregator)
        return self.rule.weights(_neighbourhood(self._seats, self._seats.mask))

    def _apply_dense(
        self,
        rule: WeightedAggregator,
        messages: Tensor,
        head: Tensor | None,
        share: bool,
        models: Tensor,
    ) -> Tensor | None:
        seats = self._seats
        if rule.reads == "nothing":
            weights = self._constant
        elif rule.reads == "gram":
            weights = rule.weights(self._dense_gram(messages))
        else:
            assert head is not None
            weights = rule.weights(self._dense_head(messages, head))
        runs = len(messages)
        matrix = torch.zeros(
            runs, self.agents, self.agents, dtype=messages.dtype, device=messages.device
        )
        matrix.scatter_add_(
            -1,
            seats.index.expand(runs, -1, -1),
            weights.to(messages.dtype).expand(runs, -1, -1),
        )
        if messages.shape[-1] <= SPAN:
            torch.bmm(matrix, messages, out=models)
        else:
            list(
                self._map(
                    lambda span: models[..., span].copy_(matrix @ messages[..., span]),
                    spans(messages.shape[-1]),
                )
            )
        # A value that is not finite reaches every row of the product, even with weight zero.
        if not torch.isfinite(models[:, 0].sum()):
            models.copy_(_combine_carefully(matrix, messages))
        return (weights * seats.poisoned).sum(-1).expand(runs, -1) if share else None

    def _gather_pairs(self, products: Tensor) -> Tensor:
        """``[runs, ..., W, W]`` for the network as ``[runs, W, ..., m, m]`` at the seats."""
        runs, slots = len(products), self._seats.slots
        middle = products.shape[1:-2]
        flat = products.reshape(runs, -1, self.agents**2)
        pairs = self._pairs.unsqueeze(1).expand(runs, flat.shape[1], -1)
        gathered = flat.gather(-1, pairs).view(runs, -1, self.agents, slots, slots)
        return gathered.movedim(1, 2).reshape(runs, self.agents, *middle, slots, slots)

    def _dense_gram(self, messages: Tensor) -> Neighbourhood:
        whole = gram(messages, self._map)
        finite = torch.isfinite(whole.diagonal(dim1=-2, dim2=-1))
        return self._dense_neighbourhood(finite, gram=whole)

    def _dense_head(self, messages: Tensor, head: Tensor) -> Neighbourhood:
        finite = torch.isfinite(messages.sum(-1))
        raw, centred = _head_products(head, finite)
        return self._dense_neighbourhood(finite, head=raw, head_centred=centred)

    def _dense_neighbourhood(self, finite: Tensor, **products: Tensor) -> Neighbourhood:
        runs = len(finite)
        index = self._seats.index.expand(runs, -1, -1)
        at_slots = finite.unsqueeze(1).expand(-1, self.agents, -1).gather(-1, index)
        return _neighbourhood(
            self._seats,
            at_slots & self._seats.mask,
            **{name: self._gather_pairs(values) for name, values in products.items()},
        )

    # -- everything else: neighbourhoods gathered in chunks

    def _pieces(self, messages: Tensor) -> Iterator[tuple[slice | Tensor, Seats]]:
        """Runs and seats that fit into a chunk of memory."""
        for network in dict.fromkeys(self.networks):
            runs: slice | Tensor = slice(None)
            count = len(messages)
            if len(self.networks) > 1:
                same = [run for run, other in enumerate(self.networks) if other is network]
                together = same == list(range(same[0], same[-1] + 1))
                runs = slice(same[0], same[-1] + 1) if together else torch.tensor(same)
                count = len(same)
            per_slot = count * messages.shape[-1] * messages.element_size()
            for seats in seat((network,), *self.rule.wiring(), together=False):
                some = max(1, CHUNK_BYTES // (per_slot * seats.slots))
                for start in range(0, len(seats.agents), some):
                    yield runs, seats.some(start, start + some).to(messages.device)

    def _head_of(self, messages: Tensor) -> Tensor:
        shape = self.rule.head_shape()
        if shape is None:
            raise BezoarError(
                f"aggregator {self.rule.name}: give head=(classes, features), the shape of the "
                "output layer at the start of a message"
            )
        classes, features = shape
        if classes * features > messages.shape[-1]:
            raise BezoarError(
                f"head: {classes} × {features} is longer than a message of {messages.shape[-1]}"
            )
        head = messages[..., : classes * features]
        return head.reshape(*head.shape[:-1], classes, features)

    def _check_messages(self, messages: Tensor) -> None:
        if messages.ndim < 2 or messages.shape[-2] != self.agents:
            raise BezoarError(
                f"messages: expected shape [..., {self.agents}, D], found {list(messages.shape)}"
            )
        if not messages.is_floating_point():
            raise BezoarError(f"messages: expected floating point, found {messages.dtype}")


def _neighbourhood(seats: Seats, finite: Tensor, **products: Tensor) -> Neighbourhood:
    if "gram" in products:
        both = finite.unsqueeze(-1) & finite.unsqueeze(-2)
        products["gram"] = products["gram"].masked_fill_(~both, 0)
    return Neighbourhood(
        mask=seats.mask,
        finite=finite,
        mixing=seats.mixing,
        estimate=seats.estimate,
        largest_estimate=seats.largest_estimate,
        index=seats.index,
        **products,
    )


def _head_products(head: Tensor, finite: Tensor) -> tuple[Tensor, Tensor]:
    """Each class's inner products ``[..., classes, n, n]``, and the same about a reference."""
    by_class = head.transpose(-2, -3)
    rows = torch.empty(by_class.shape, dtype=torch.float64, device=head.device).copy_(by_class)
    gone = ~finite
    if bool(gone.any()):
        rows.masked_fill_(gone[..., None, :, None], 0)
    raw = rows @ rows.mT
    stride = max(1, head.shape[-1] * head.shape[-2] // SAMPLE)
    sample = head[..., ::stride].flatten(-2).masked_fill(gone.unsqueeze(-1), torch.nan)
    reference = central_input(sample).unsqueeze(-3)
    rows -= rows.gather(-2, reference.expand(*rows.shape[:-2], 1, rows.shape[-1]))
    return raw, rows @ rows.mT


def _combine_gathered(
    rule: WeightedAggregator, messages: Tensor, head: Tensor | None, seats: Seats, share: bool
) -> tuple[Tensor, Tensor | None]:
    [index] = seats.index
    values = messages[:, index]
    if rule.reads == "gram":
        products = {"gram": gram(values)}
        finite = torch.isfinite(products["gram"].diagonal(dim1=-2, dim2=-1))
    else:
        finite = torch.isfinite(values.sum(-1))
        products = {}
        if rule.reads == "head":
            assert head is not None
            raw, centred = _head_products(head[:, index], finite)
            products = {"head": raw, "head_centred": centred}
    weights = rule.weights(_neighbourhood(seats, finite & seats.mask, **products))
    weights = weights.expand(len(messages), -1, -1)
    row = weights.to(messages.dtype).unsqueeze(-2)
    models = row @ values
    if not torch.isfinite(models.sum()):
        models = _combine_carefully(row, values)
    shares = (weights * seats.poisoned).sum(-1) if share else None
    return models.squeeze(-2), shares


def _combine_carefully(weights: Tensor, values: Tensor) -> Tensor:
    """``weights [..., r, n] @ values [..., n, D]`` where zero times infinity is zero.

    An agent that does give weight to a message that is not finite gets NaN.
    """
    bad = ~torch.isfinite(values).all(-1)
    models = weights @ values.masked_fill(bad.unsqueeze(-1), 0)
    reached = (weights * bad.unsqueeze(-2)).sum(-1) != 0
    return models.masked_fill_(reached.unsqueeze(-1), torch.nan)


def _combine_ranks(
    rule: CoordinateAggregator, messages: Tensor, seats: Seats, share: bool
) -> tuple[Tensor, Tensor | None]:
    """Sort each coordinate of the inputs and average by rank. NaN counts as plus infinity."""
    [index], [mask], [poisoned] = seats.index, seats.mask, seats.poisoned
    slots, seated, (runs, agents, length) = seats.slots, len(index), messages.shape
    ranks = rule.rank_weights(mask.sum(-1), seats.estimate[0], slots)
    low = high = slots
    outermost = rule.outermost(seats.largest_estimate)
    if outermost is not None:
        low, high = outermost, outermost + slots - seats.fewest
    # Slots come first, so that a slot's values of all runs and seats lie together.
    flat = messages.reshape(-1, length)
    offsets = agents * torch.arange(runs, device=index.device)[:, None]
    rows = (index.T.unsqueeze(1) + offsets).flatten()
    padded = (~mask.T).unsqueeze(1).expand(slots, runs, seated)
    padding = padded.flatten().nonzero().squeeze(-1)
    finite = bool(torch.isfinite(messages.sum()))
    models = messages.new_empty(runs, seated, length)
    given = messages.new_zeros(runs, seated, dtype=torch.float64)
    width = max(256, RANK_BYTES // (runs * seated * slots * messages.element_size()))
    for start in range(0, length, width):
        values = flat[:, start : start + width].index_select(0, rows)
        if not finite:
            values = values.nan_to_num_(torch.inf, torch.inf, -torch.inf)
        values = values.index_fill_(0, padding, torch.inf).view(slots, runs, seated, -1)
        ordered = sort_ends(list(values.clone() if share else values), low, high)
        _average_ranks(ordered, ranks, models[..., start : start + width])
        if share:
            kept = _kept(values, ordered, ranks) & ~padded.unsqueeze(-1)
            poison = (kept & poisoned.T[:, None, :, None]).sum(0) / kept.sum(0)
            given += poison.sum(-1, dtype=torch.float64)
    return models, given / length if share else None


def _average_ranks(ordered: list[Tensor], ranks: Tensor, out: Tensor) -> None:
    """``Σ_r ranks[:, r] · ordered[r]`` over ``[runs, seats, D]``, ranks without weight left out."""
    out.zero_()
    used = (ranks > 0).sum(0).tolist()
    weights = ranks.to(out.dtype).unsqueeze(-1)
    for rank, values in enumerate(ordered):
        weight = weights[:, rank]
        if used[rank] == len(ranks):
            out.addcmul_(values, weight)
        elif used[rank]:  # zero times infinity must not count
            out += (values * weight).masked_fill_(weight == 0, 0)


def _kept(values: Tensor, ordered: list[Tensor], ranks: Tensor) -> Tensor:
    """``[slots, runs, seats, D]`` whether the value lies between the outermost that have weight."""
    by_rank = torch.stack(ordered)
    unused = ranks.T[:, None, :, None] == 0
    lowest = by_rank.masked_fill(unused, torch.inf).amin(0)
    highest = by_rank.masked_fill(unused, -torch.inf).amax(0)
    return (values >= lowest) & (values <= highest)
