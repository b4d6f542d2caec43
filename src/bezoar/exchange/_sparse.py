"""Sparse networks: every neighbourhood gathered, weighed and combined on its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from bezoar.aggregators import OutputLayer, WeightedAggregator
from bezoar.exchange._gathered import GatheredExchange, GatheredInputs, Piece
from bezoar.exchange._inner_products import inner_products
from bezoar.exchange._output_layers import GatheredLayers, layer_of, read_layers
from bezoar.exchange._sent import Sent
from bezoar.exchange._tuning import Map


@dataclass(eq=False)
class SparseExchange(GatheredExchange):
    """A rule by weights on one network, in some runs.

    Attributes:
        layer: where the output layer lies in a message; if it is given, the rule's own ``head`` is
            not used.
    """

    rule: WeightedAggregator
    layer: OutputLayer | None

    def _pieces(self, sent: Sent) -> Iterator[Piece]:
        for part in self.parts:
            slots = part.slots + len(self.rule.remembers())
            # Inputs, and matrices like their Gram matrix: the larger of the two counts.
            per_slot = max(sent.messages[0, 0].nbytes, 64 * slots)
            yield from self._cut_up(part, 3 * self.tuning.piece_bytes // (per_slot * slots))

    def _worker(
        self, pieces: Sequence[Piece], sent: Sent, models: Tensor, tell: bool, map: Map
    ) -> Callable[[Piece], Tensor | None]:
        layers = None
        if self.rule.reads == "output_layer":
            layer = layer_of(self.rule, self.layer)
            layers = read_layers([sent.messages.flatten(0, 1)], layer, map, self.tuning)

        def work(piece: Piece) -> Tensor | None:
            inputs = piece.inputs(sent, self.rule.remembers())
            weights = self._weights(piece, inputs, layers).expand(len(piece.runs), -1, -1)
            combined = inputs.combined(weights.flatten(0, 1))
            models.flatten(0, 1).index_copy_(0, piece.rows[:, 0], combined)
            return weights if tell else None

        return work

    def _weights(
        self, piece: Piece, inputs: GatheredInputs, layers: GatheredLayers | None
    ) -> Tensor:
        """``[runs or 1, n, m]`` what the rule gives each slot."""
        shape = (len(piece.runs), -1, inputs.shape[1])
        finite = gram = None
        if layers is not None:
            rows = inputs.rows
            if inputs.remembered or inputs.false is not None:  # these are not among the messages
                values = inputs.columns(slice(None)).flatten(0, 1).clone()
                layer = layer_of(self.rule, self.layer)
                layers = read_layers([values], layer, map, self.tuning)
                rows = layers.rows
            layers = layers.at(rows.view(shape))
            finite = layers.finite
        elif self.rule.sums_updates():
            gram, finite = self._summed(piece, inputs)
            gram, finite = gram.view(*shape, shape[-1]), finite.view(shape)
        elif self.rule.reads == "gram":
            gram = inner_products(inputs, self.tuning).view(*shape, shape[-1])
            finite = torch.isfinite(gram.diagonal(dim1=-2, dim2=-1))
        distances = None
        if self.rule.reads == "distances":
            assert inputs.sent.distances is not None
            distances = piece.here.of_links(inputs.sent.distances, piece.runs)
            finite = torch.isfinite(distances)
        losses = self._losses(piece, inputs) if self.rule.samples_judged() else None
        names = self.rule.remembers()
        seen = piece.here.seen(inputs.sent, finite, names, gram, layers, losses, distances)
        return self.rule.weights(seen)

    def _summed(self, piece: Piece, inputs: GatheredInputs) -> tuple[Tensor, Tensor]:
        """Inner products ``[places, m, m]`` of summed updates, and which slots are finite."""
        sums = inputs.sent.sums
        assert sums is not None
        values, slots = inputs.columns(slice(None)), inputs.rows.shape[1]
        finite = torch.isfinite(values).all(-1)
        layers = layer_of(self.rule, self.layer).of(values).flatten(-2)
        updates = layers[:, :slots] - layers[:, slots:]
        known = finite[:, :slots] & finite[:, slots:]
        updates = updates.masked_fill_(~known.unsqueeze(-1), 0)
        device = updates.device
        kept = [sums.runs.index(run) for run in piece.runs]
        runs = torch.tensor(kept, device=device)[:, None] * sums.before.shape[1]
        links = (runs + piece.here.first_link).flatten().unsqueeze(-1)
        links = (links + torch.arange(slots, device=device)).flatten()
        width = updates.shape[-1]
        summed = sums.before.flatten(0, 1)[links, :width].view_as(updates) + updates
        sums.after.flatten(0, 1)[links, :width] = summed.flatten(0, 1)
        exact = pad(summed.to(torch.float64), (0, 0, 0, 1))
        return exact @ exact.mT, finite

    def _losses(self, piece: Piece, inputs: GatheredInputs) -> Tensor:
        """``[runs, n, m]`` the losses of the inputs, each agent's on samples of its own."""
        judge, samples = inputs.sent.judge, self.rule.samples_judged()
        assert judge is not None
        agents = piece.here.on_host[0, :, 0].tolist()
        values = inputs.columns(slice(None)).clone()
        values = values.unflatten(0, (len(piece.runs), -1))
        return torch.stack(
            [
                torch.stack([judge(run, *each, samples) for each in zip(agents, held, strict=True)])
                for run, held in zip(piece.runs, values, strict=True)
            ]
        )
