"""The output layers of messages, for rules that look at them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bezoar._questions import some
from bezoar.exchange._inner_products import (
    SAMPLE,
    HeldInputs,
    central,
    inner_products,
    too_close,
)
from bezoar.exchange._tuning import DEFAULT, Tuning


@dataclass(frozen=True)
class NetworkOutputLayers:
    """Output layers on a dense network, whose inner products are known for all pairs of messages.

    Attributes:
        layers: ``[runs, n, classes, features]`` the output layers of all messages.
        finite: ``[runs, n]`` which messages are finite.
        raw: ``[runs, classes, n, n]`` each class's inner products.
        centred: the same about a common reference.
        rows: ``[runs or 1, agents, m]`` the message behind each slot.
        present: ``[runs or 1, agents, m]`` false at padding.
    """

    layers: Tensor
    finite: Tensor
    raw: Tensor
    centred: Tensor
    rows: Tensor
    present: Tensor

    def norms(self) -> Tensor:
        norms = self.raw.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt_()
        runs, classes, messages = norms.shape
        _, agents, slots = self.rows.shape
        rows = self.rows.unsqueeze(2).expand(runs, agents, classes, slots)
        return norms.unsqueeze(1).expand(runs, agents, classes, messages).gather(-1, rows)

    def products(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        messages = self.raw.shape[-1]
        pairs = self.rows.unsqueeze(-1) * messages + self.rows.unsqueeze(-2)
        places = classes[..., None, None] * messages**2 + pairs.unsqueeze(2)
        raw, centred = (
            known.flatten(1).gather(1, places.flatten(1)).view(places.shape).sum(2)
            for known in (self.raw, self.centred)
        )
        if self.layers.dtype != torch.float64:
            return raw, centred  # in a wider type than the layers' they are exact enough
        again = too_close(centred, torch.float64, self.present).any(-1)
        if some(again):
            # These are far from the common reference and need one of their own.
            run, agent = again.nonzero(as_tuple=True)
            here = self.rows.expand(len(raw), -1, -1)[run, agent]
            gathered = GatheredOutputLayers.of(
                self.layers[run.unsqueeze(-1), here],
                self.finite[run.unsqueeze(-1), here],
                DEFAULT,
            )
            raw[again], centred[again] = gathered.products(classes[run, agent])
        return raw, centred


@dataclass(frozen=True)
class GatheredOutputLayers:
    """Output layers gathered at each agent.

    Attributes:
        layers: ``[..., m, classes, features]``, zero at inputs that are not finite.
        tuning: how the work is cut up.
    """

    layers: Tensor
    tuning: Tuning

    @classmethod
    def of(cls, layers: Tensor, finite: Tensor, tuning: Tuning) -> "GatheredOutputLayers":
        """Leave out the inputs that are not ``finite [..., m]``."""
        if some(~finite):
            layers = layers.masked_fill(~finite[..., None, None], 0)
        return cls(layers, tuning)

    def norms(self) -> Tensor:
        norms: Tensor = torch.linalg.vector_norm(self.layers, dim=-1).to(torch.float64)
        return norms.mT

    def products(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        *batch, inputs, count, features = self.layers.shape
        layers = self.layers.reshape(-1, inputs, count, features)
        chosen = classes.reshape(len(layers), 1, -1)
        places = torch.arange(len(layers), device=chosen.device)[:, None, None]
        slots = torch.arange(inputs, device=chosen.device)[:, None]
        rows = layers[places, slots, chosen].flatten(-2)
        shape = (*batch, inputs, inputs)
        exact = rows.to(torch.float64)
        return (exact @ exact.mT).view(shape), inner_products(HeldInputs(rows), self.tuning).view(
            shape
        )


def layer_products(layers: Tensor, finite: Tensor) -> tuple[Tensor, Tensor]:
    """Each class's inner products of ``[..., n, classes, features]``, and about a reference.

    Returns:
        ``[..., classes, n, n]`` twice, float64.
    """
    by_class = layers.transpose(-2, -3)
    rows = torch.empty(by_class.shape, dtype=torch.float64, device=layers.device).copy_(by_class)
    gone = ~finite
    if some(gone):
        rows.masked_fill_(gone[..., None, :, None], 0)
    stride = max(1, layers.shape[-1] * layers.shape[-2] // SAMPLE)
    sample = layers[..., ::stride].flatten(-2).masked_fill(gone.unsqueeze(-1), torch.nan)
    reference = central(sample)[..., None, None, None]
    middle = rows.gather(-2, reference.expand(*rows.shape[:-2], 1, rows.shape[-1]))
    raw = rows @ rows.mT
    rows -= middle
    return raw, rows @ rows.mT
