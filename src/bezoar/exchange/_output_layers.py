"""The output layers of messages, for rules that look at them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._questions import some
from bezoar.aggregators import Aggregator, OutputLayer
from bezoar.exchange._gathered import GatheredInputs
from bezoar.exchange._inner_products import fast_rows, inner_products
from bezoar.exchange._tuning import Map, Tuning


@dataclass(frozen=True)
class GatheredLayers:
    """The output layers behind the slots of some agents.

    Attributes:
        parts: ``[n, classes, features]`` the output layers of all messages, in several parts.
        biases: ``[n, classes]`` their biases, if it is known where these are.
        all_norms: ``[n, classes]`` the norms of their rows, float64.
        all_finite: ``[n]`` which messages are free of NaN and infinity.
        rows: ``[..., m]`` the message behind each slot.
        map: what goes through the pieces of work.
        tuning: how the work is cut up.
        runs: the parts are so many runs, and the slots are those of all runs; ``None`` if nothing
            is known of runs.
    """

    parts: Sequence[Tensor]
    biases: Tensor | None
    all_norms: Tensor
    all_finite: Tensor
    rows: Tensor
    map: Map
    tuning: Tuning
    runs: int | None = None

    @cached_property
    def layers(self) -> Tensor:
        """``[n, classes, features]`` the output layers of all messages."""
        first, *others = self.parts
        return torch.cat([*self.parts]) if others else first  # one part remains a view

    def at(self, rows: Tensor, runs: int | None = None) -> "GatheredLayers":
        """The output layers behind other slots."""
        return replace(self, rows=rows, runs=runs)

    @property
    def finite(self) -> Tensor:
        """``[..., m]`` whether the message behind each slot is finite."""
        return self.all_finite[self.rows]

    def norms(self) -> Tensor:
        return self.all_norms[self.rows].masked_fill_(~self.finite.unsqueeze(-1), 0).mT

    def changes(self, slot: int) -> Tensor:
        _, kinds, features = self.layers.shape
        *batch, slots = self.rows.shape
        most = max(1, self.tuning.block_bytes // (self.layers.itemsize * slots * kinds * features))
        pieces = self.rows.flatten(0, -2).split(most)
        found = torch.cat(list(self.map(lambda rows: self._changes(rows, slot), pieces)))
        changes: Tensor = found.view(*batch, slots, kinds).mT
        return changes

    def _changes(self, rows: Tensor, slot: int) -> Tensor:
        """``[n, m, classes]`` :meth:`changes` of some neighbourhoods ``[n, m]``."""
        values = self.layers[rows]
        norms = _norms(values - values[:, slot : slot + 1])
        if self.biases is not None:
            biases = self.biases[rows]
            norms += (biases - biases[:, slot : slot + 1]).abs()
        return norms.to(torch.float64).masked_fill_(~self.all_finite[rows].unsqueeze(-1), 0)

    def products(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        _, kinds, features = self.parts[0].shape
        *batch, slots = self.rows.shape
        chosen, count = classes.shape[-1], len(self.all_finite)
        if self.runs is not None and self.parts[0].dtype == torch.float32:
            agents = self.rows.shape[1]
            if kinds * (count // self.runs) ** 2 <= chosen * agents * slots**2:
                return self._products_of_runs(self.runs, classes)
        size = 8 * slots * chosen * features
        most = max(1, self.tuning.block_bytes // size)
        pieces = zip(
            self.rows.flatten(0, -2).split(most), classes.flatten(0, -2).split(most), strict=True
        )
        raw, centred = zip(*self.map(lambda piece: self._products(*piece), pieces), strict=True)
        return torch.cat(raw).view(*batch, slots, -1), torch.cat(centred).view(*batch, slots, -1)

    def _products(self, rows: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """:meth:`products` of some neighbourhoods ``[n, m]`` by their classes ``[n, c]``."""
        row, column, _ = self.layers.stride()
        count, kinds, features = self.layers.shape
        # Every stretch of numbers as long as a row of an output layer, of which some are gathered.
        starts = (count - 1) * row + (kinds - 1) * column + 1
        stretches = self.layers.as_strided((starts, features), (1, 1))
        places = rows.unsqueeze(-1) * row + classes.unsqueeze(-2) * column
        values = stretches.index_select(0, places.flatten()).view(*rows.shape, -1)
        gone = ~self.all_finite[rows]
        if some(gone):
            values.masked_fill_(gone.unsqueeze(-1), 0)
        if values.dtype == torch.float64:
            return values @ values.mT, inner_products(GatheredInputs.held(values), self.tuning)
        return _exact_products(values)

    def _products_of_runs(self, runs: int, classes: Tensor) -> tuple[Tensor, Tensor]:
        """:meth:`products` from those of all messages of a run, class by class."""
        gone = ~self.all_finite.view(runs, 1, -1, 1)
        careful = some(gone)

        def of_run(run: int) -> tuple[Tensor, Tensor]:
            values = self.parts[run].transpose(0, 1)
            return _exact_products(values.masked_fill(gone[run], 0) if careful else values)

        known = [torch.stack(part) for part in zip(*self.map(of_run, range(runs)), strict=True)]
        count = len(self.parts[0])
        rows = self.rows - count * torch.arange(runs, device=self.rows.device)[:, None, None]
        pairs = rows.unsqueeze(-1) * count + rows.unsqueeze(-2)
        places = classes[..., None, None] * count**2 + pairs.unsqueeze(2)
        raw, centred = (
            part.flatten(1).gather(1, places.flatten(1)).view(places.shape).sum(2) for part in known
        )
        return raw, centred


def _exact_products(values: Tensor) -> tuple[Tensor, Tensor]:
    """``[..., m, m]`` inner products of ``[..., m, features]``, and about the first as reference.

    Products in float64, a wider type than the values', are as exact as the values are.
    """
    *batch, count, features = values.shape
    exact = values.new_empty(*batch, fast_rows(count + 1), features, dtype=torch.float64)
    differences, reference = exact[..., :count, :], exact[..., count : count + 1, :]
    differences.copy_(values)
    reference.copy_(differences[..., :1, :])
    differences.sub_(reference)
    exact[..., count + 1 :, :] = 0
    products = exact @ exact.mT
    centred, along = products[..., :count, :count], products[..., :count, count : count + 1]
    # (r + a)ᵀ (r + b) = aᵀb + rᵀa + rᵀb + rᵀr
    square = products[..., count : count + 1, count : count + 1]
    return centred + along + along.mT + square, centred


def read_layers(
    messages: Sequence[Tensor], layer: OutputLayer, map: Map, tuning: Tuning
) -> GatheredLayers:
    """The output layers of messages, ``[n, D]`` in each of several parts."""
    layers = [layer.of(part) for part in messages]
    known = [biases for part in messages if (biases := layer.biases_of(part)) is not None]
    biases = torch.cat(known) if known else None
    norms = torch.cat([_norms(part).to(torch.float64) for part in layers])
    finite = torch.cat([finite_rows(part, map, tuning) for part in messages])
    numbers = torch.arange(len(finite), device=finite.device)
    return GatheredLayers(layers, biases, norms, finite, numbers, map, tuning)


def _norms(rows: Tensor) -> Tensor:
    """``[...]`` the norms of rows ``[..., features]``, in a wider type where they need it."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1)
    if some(~torch.isfinite(norms)):  # perhaps a square was too large for the rows' type
        norms = torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)
    return norms


def finite_rows(messages: Tensor, map: Map, tuning: Tuning) -> Tensor:
    """``[n]`` which of the messages ``[n, D]`` are free of NaN and infinity."""
    dtype = torch.promote_types(messages.dtype, torch.float32)  # half precision would overflow
    spans = tuning.spans(messages.shape[-1])
    sums = map(lambda span: messages[:, span].sum(-1, dtype=dtype), spans)
    finite = torch.isfinite(torch.stack(list(sums)).sum(0))
    if some(~finite):  # perhaps a sum of large numbers was too large
        finite = torch.isfinite(messages).all(-1)
    return finite


def layer_of(rule: Aggregator, known: OutputLayer | None) -> OutputLayer:
    """Where the output layer lies in a message: where the model has it, or where the rule says.

    Raises:
        BezoarError: where nobody knows.
    """
    layer = known or rule.output_layer()
    if layer is None:
        raise BezoarError(
            f"aggregator {rule.name}: give head=(classes, features), the shape of the output "
            "layer at the start of a message"
        )
    return layer
