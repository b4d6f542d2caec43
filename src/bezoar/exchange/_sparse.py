"""Sparse networks: every neighbourhood gathered, weighed and combined on its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bezoar.aggregators import OutputLayer, WeightedAggregator
from bezoar.exchange._gathered import GatheredExchange, GatheredInputs, Piece
from bezoar.exchange._inner_products import inner_products
from bezoar.exchange._output_layers import GatheredLayers, finite_rows, layer_of, read_layers
from bezoar.exchange._sent import Sent
from bezoar.exchange._tuning import Map
from bezoar.exchange._update_sums import add_updates


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

        known: list[Tensor] = []
        if self.rule.sums_updates():
            remembered = [sent.remembered[name] for name in self.rule.remembers()]
            tables = [each.flatten(0, 1) for each in (sent.messages, *remembered)]
            tables += [] if sent.false is None else [sent.false.values]
            known = [finite_rows(table, map, self.tuning) for table in tables]

        def work(piece: Piece) -> Tensor | None:
            inputs = piece.inputs(sent, self.rule.remembers())
            weights = self._weights(piece, inputs, layers, known).expand(len(piece.runs), -1, -1)
            combined = inputs.combined(weights.flatten(0, 1))
            models.flatten(0, 1).index_copy_(0, piece.rows[:, 0], combined)
            return weights if tell else None

        return work

    def _weights(
        self,
        piece: Piece,
        inputs: GatheredInputs,
        layers: GatheredLayers | None,
        known: Sequence[Tensor],
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
            finite = self._finite(piece, inputs, known)
            gram = self._summed(piece, inputs, finite)
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

    def _summed(self, piece: Piece, inputs: GatheredInputs, finite: Tensor) -> Tensor:
        """``[runs, n, m, m]`` inner products of summed updates."""
        sums, layer = inputs.sent.sums, layer_of(self.rule, self.layer)
        assert sums is not None
        held = replace(layer, start=0).of(inputs.columns(layer.columns)).flatten(-2)
        runs = len(piece.runs)
        layers = held.view(runs, -1, *held.shape[1:])
        return add_updates(sums, piece.runs, piece.here, layers, finite)

    def _finite(self, piece: Piece, inputs: GatheredInputs, known: Sequence[Tensor]) -> Tensor:
        """``[runs, n, m]`` which slots are finite.

        Args:
            piece: the agents.
            inputs: their inputs.
            known: ``[rows]`` which of the messages are finite, which models that are remembered,
                and which false messages, if there are any.
        """
        messages, *remembered = known
        finite = messages[inputs.rows]
        if inputs.false is not None:
            lies = torch.from_numpy(inputs.false).to(finite.device)
            finite = torch.where(lies >= 0, remembered.pop()[lies], finite)
        own = inputs.rows[:, :1]
        more = [rows[own] for rows in remembered[: len(inputs.remembered)]]
        return torch.cat([finite, *more], dim=1).view(len(piece.runs), -1, inputs.shape[1])

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
