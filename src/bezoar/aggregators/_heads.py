"""The output layers of messages, for rules that look at them."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from bezoar.aggregators._gram import SAMPLE, central_input


class Heads(Protocol):
    """What a rule may ask about the output layers of the inputs at some seats."""

    def norms(self) -> Tensor:
        """``[..., classes, m]`` the norm of each class's row; zero at inputs left out."""

    def products(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """The inner products of inputs by their rows of some classes.

        Args:
            classes: ``[..., c]`` which.

        Returns:
            ``[..., m, m]``, and the same about a common reference.
        """


@dataclass(frozen=True)
class NetworkHeads:
    """Output layers whose inner products are known for the whole network.

    Attributes:
        raw: ``[runs, classes, W, W]`` each class's inner products.
        centred: the same about a common reference.
        index: ``[runs or 1, seats, m]`` the agent behind each slot.
    """

    raw: Tensor
    centred: Tensor
    index: Tensor

    def norms(self) -> Tensor:
        norms = self.raw.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt_()
        runs, classes, agents = norms.shape
        _, seats, slots = self.index.shape
        index = self.index.unsqueeze(2).expand(runs, seats, classes, slots)
        return norms.unsqueeze(1).expand(runs, seats, classes, agents).gather(-1, index)

    def products(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        agents = self.raw.shape[-1]
        pairs = self.index.unsqueeze(-1) * agents + self.index.unsqueeze(-2)
        places = classes[..., None, None] * agents**2 + pairs.unsqueeze(2)
        raw, centred = (
            known.flatten(1).gather(1, places.flatten(1)).view(places.shape).sum(2)
            for known in (self.raw, self.centred)
        )
        return raw, centred


@dataclass(frozen=True)
class GatheredHeads:
    """Output layers gathered at the seats.

    Attributes:
        rows: ``[runs, seats, m, classes, features]``, zero at inputs that are not finite.
        finite: ``[runs, seats, m]`` which are.
    """

    rows: Tensor
    finite: Tensor

    def norms(self) -> Tensor:
        norms: Tensor = torch.linalg.vector_norm(self.rows, dim=-1, dtype=torch.float64)
        return norms.mT

    def products(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        chosen = self.rows.take_along_dim(classes[..., None, :, None], dim=-2)
        raw, centred = head_products(chosen.flatten(-2).unsqueeze(-2), self.finite)
        return raw.squeeze(-3), centred.squeeze(-3)


def gather_heads(head: Tensor, index: Tensor, finite: Tensor) -> GatheredHeads:
    """The output layers ``[runs, W, classes, features]`` at slots ``[seats, m]``."""
    rows = head[:, index]
    if not bool(finite.all()):
        rows = rows.masked_fill_(~finite[..., None, None], 0)
    return GatheredHeads(rows, finite)


def head_products(head: Tensor, finite: Tensor) -> tuple[Tensor, Tensor]:
    """Each class's inner products of ``[..., n, classes, features]``, and about a reference.

    Returns:
        ``[..., classes, n, n]`` twice, float64.
    """
    by_class = head.transpose(-2, -3)
    rows = torch.empty(by_class.shape, dtype=torch.float64, device=head.device).copy_(by_class)
    gone = ~finite
    if bool(gone.any()):
        rows.masked_fill_(gone[..., None, :, None], 0)
    stride = max(1, head.shape[-1] * head.shape[-2] // SAMPLE)
    sample = head[..., ::stride].flatten(-2).masked_fill(gone.unsqueeze(-1), torch.nan)
    reference = central_input(sample).unsqueeze(-3)
    middle = rows.gather(-2, reference.expand(*rows.shape[:-2], 1, rows.shape[-1]))
    rows -= middle
    centred = rows @ rows.mT
    # (r + a)ᵀ (r + b) = aᵀb + rᵀa + rᵀb + rᵀr
    along = rows @ middle.mT
    return centred + along + along.mT + middle @ middle.mT, centred
