"""The output layers of messages, for rules that look at them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bezoar.exchange._inner_products import SAMPLE, central_input, too_close


@dataclass(frozen=True)
class NetworkOutputLayers:
    """Output layers on a dense network, whose inner products are known for all pairs of messages.

    Attributes:
        layers: ``[runs, n, classes, features]`` the output layers of all messages.
        finite: ``[runs, n]`` which messages are finite.
        raw: ``[runs, classes, n, n]`` each class's inner products.
        centred: the same about a common reference.
        rows: ``[runs or 1, agents, m]`` the message behind each slot.
    """

    layers: Tensor
    finite: Tensor
    raw: Tensor
    centred: Tensor
    rows: Tensor

    @classmethod
    def of(cls, layers: Tensor, finite: Tensor, rows: Tensor) -> "NetworkOutputLayers":
        """Take the inner products of all messages."""
        return cls(layers, finite, *_products(layers, finite), rows)

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
        again = too_close(centred, torch.float64).any(-1)
        if bool(again.any()):
            # These are far from the common reference and need one of their own.
            run, agent = again.nonzero(as_tuple=True)
            here = self.rows.expand(len(raw), -1, -1)[run, agent]
            gathered = GatheredOutputLayers.of(
                self.layers[run.unsqueeze(-1), here], self.finite[run.unsqueeze(-1), here]
            )
            raw[again], centred[again] = gathered.products(classes[run, agent])
        return raw, centred


@dataclass(frozen=True)
class GatheredOutputLayers:
    """Output layers gathered at each agent.

    Attributes:
        layers: ``[..., m, classes, features]``, zero at inputs that are not finite.
        finite: ``[..., m]`` which are.
    """

    layers: Tensor
    finite: Tensor

    @classmethod
    def of(cls, layers: Tensor, finite: Tensor) -> "GatheredOutputLayers":
        """Leave out the inputs that are not finite."""
        if not bool(finite.all()):
            layers = layers.masked_fill(~finite[..., None, None], 0)
        return cls(layers, finite)

    def norms(self) -> Tensor:
        norms: Tensor = torch.linalg.vector_norm(self.layers, dim=-1, dtype=torch.float64)
        return norms.mT

    def products(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        chosen = self.layers.take_along_dim(classes[..., None, :, None], dim=-2)
        raw, centred = _products(chosen.flatten(-2).unsqueeze(-2), self.finite)
        return raw.squeeze(-3), centred.squeeze(-3)


def _products(layers: Tensor, finite: Tensor) -> tuple[Tensor, Tensor]:
    """Each class's inner products of ``[..., n, classes, features]``, and about a reference.

    Returns:
        ``[..., classes, n, n]`` twice, float64.
    """
    by_class = layers.transpose(-2, -3)
    rows = torch.empty(by_class.shape, dtype=torch.float64, device=layers.device).copy_(by_class)
    gone = ~finite
    if bool(gone.any()):
        rows.masked_fill_(gone[..., None, :, None], 0)
    stride = max(1, layers.shape[-1] * layers.shape[-2] // SAMPLE)
    sample = layers[..., ::stride].flatten(-2).masked_fill(gone.unsqueeze(-1), torch.nan)
    reference = central_input(sample)[..., None, None, None]
    middle = rows.gather(-2, reference.expand(*rows.shape[:-2], 1, rows.shape[-1]))
    rows -= middle
    centred = rows @ rows.mT
    # (r + a)ᵀ (r + b) = aᵀb + rᵀa + rᵀb + rᵀr
    along = rows @ middle.mT
    return centred + along + along.mT + middle @ middle.mT, centred
