"""What an agent has after the exchange, and what a rule may ask about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from bezoar._errors import BezoarError
from bezoar._options import AtLeastOne
from bezoar._questions import answered_at_once

#: Two scores are a tie if they differ by less than this share of the larger one.
TIE = 1e-10


#: The option of rules that look at output layers: ``(classes, features)``.
Head = tuple[Annotated[int, Field(ge=2)], AtLeastOne]


@dataclass(frozen=True)
class OutputLayer:
    """Where the output layer's weights lie in a message, one row a class.

    Attributes:
        classes: the number of rows.
        features: the length of a row.
        stride: the distance between the beginnings of two rows; by default rows have no gap.
        start: where the first row begins.
        bias: where the first class's bias lies, if there are biases and somebody knows.
        bias_stride: the distance between the biases of two classes.
    """

    classes: int
    features: int
    stride: int | None = None
    start: int = 0
    bias: int | None = None
    bias_stride: int = 1

    @property
    def columns(self) -> slice:
        """The coordinates of a message from the first to the last of the output layer's."""
        stride = self.stride or self.features
        return slice(self.start, self.start + (self.classes - 1) * stride + self.features)

    def of(self, messages: Tensor) -> Tensor:
        """``[..., classes, features]`` the output layers of messages ``[..., D]``, as a view."""
        stride = self.stride or self.features
        if self.columns.stop > messages.shape[-1]:
            raise BezoarError(
                f"head: {self.classes} × {self.features} is longer than a message of "
                f"{messages.shape[-1]}"
            )
        return messages[..., self.start :].unfold(-1, self.features, stride)[..., : self.classes, :]

    def biases_of(self, messages: Tensor) -> Tensor | None:
        """``[..., classes]`` the biases of messages ``[..., D]``, as a view, if they are known."""
        if self.bias is None:
            return None
        return messages[..., self.bias :: self.bias_stride][..., : self.classes]


class OutputLayers(Protocol):
    """What a rule may ask about the output layers of the inputs."""

    def norms(self) -> Tensor:
        """``[..., classes, m]`` the norm of each class's row; zero at inputs left out."""

    def changes(self, slot: int) -> Tensor:
        """``[..., classes, m]`` how far each class's row is from that in one slot.

        Where biases are known, how far they are apart is added.
        """

    def products(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """The inner products of inputs by their rows of some classes.

        Args:
            classes: ``[..., c]`` which.

        Returns:
            ``[..., m, m]``, and the same about a common reference.
        """


@dataclass(frozen=True)
class Neighbourhood:
    """What agents have after the exchange; leading dimensions are runs and agents.

    Slot 0 is the agent's own message, the next ones are its neighbours', padded with a mask. The
    models that the rule remembers come last. Everything is float64, whatever the messages are: the
    Gram matrix is small, and near consensus its entries cancel.

    Attributes:
        mask: ``[..., m]`` true at inputs, false at padding and at remembered models.
        finite: ``[..., m]`` whether the slot holds something free of NaN and infinity.
        mixing: ``[..., m]`` the agent's row of the mixing matrix, zero elsewhere.
        estimate: ``[...]`` the estimated number of poisoned inputs.
        largest_estimate: the largest of them, on the host.
        index: ``[..., m]`` the agent behind each slot; ties go to the lowest.
        gram: ``[..., m, m]`` inner products of the slots about a common reference; zero at
            padding and at what is not finite. Absent unless the rule reads it.
        output_layers: the inputs' output layers. Absent unless the rule reads them.
        losses: ``[..., m]`` the loss of each slot on samples of the agent's own. Absent unless the
            rule judges its inputs by that.
        distances: ``[..., m]`` the squared distance of each input to the output of the auxiliary
            rule; infinite at remembered models. Absent unless the rule reads it.
        remembered: the slot of each remembered model, by its name.
        iteration: which iteration it is, counted from 1; 0 outside training.
        progress: which share of all iterations is done.
    """

    mask: Tensor
    finite: Tensor
    mixing: Tensor
    estimate: Tensor
    largest_estimate: int
    index: Tensor
    gram: Tensor | None = None
    output_layers: OutputLayers | None = None
    losses: Tensor | None = None
    distances: Tensor | None = None
    remembered: Mapping[str, int] = field(default_factory=dict)
    iteration: int = 0
    progress: float = 0.0

    def of(self, runs: slice) -> "Neighbourhood":
        """The neighbourhoods of these runs. What all runs share stays as it is."""
        parts: dict[str, Any] = {
            name: value[runs] if len(value) > 1 else value
            for name, value in vars(self).items()
            if isinstance(value, Tensor)
        }
        return replace(self, **parts)

    @property
    def size(self) -> Tensor:
        """``[...]`` the number of inputs, own model included."""
        return self.mask.sum(-1)

    def squared_distances_to(self, combination: Tensor) -> Tensor:
        """``[..., m]`` squared distances of the slots to a combination of them.

        Args:
            combination: ``[..., m]`` weights that sum to one.
        """
        assert self.gram is not None
        return squared_distances_to(self.gram, combination.unsqueeze(-2)).squeeze(-2)

    def sizes(self) -> Tensor:
        """``[..., m]`` how far from the reference the inputs are."""
        assert self.gram is not None
        return self.gram.diagonal(dim1=-2, dim2=-1).sqrt()

    def squared_distances(self) -> Tensor:
        """``[..., m, m]`` squared distances between the inputs."""
        assert self.gram is not None
        return pairwise(self.gram)

    def finite_distances(self) -> Tensor:
        """``[..., m, m]`` squared distances between the inputs.

        They are infinite where one is not finite, and on the diagonal.
        """
        both = self.finite.unsqueeze(-1) & self.finite.unsqueeze(-2)
        squared = self.squared_distances().masked_fill_(~both, torch.inf)
        squared.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
        return squared

    def distances_to_own(self) -> Tensor:
        """``[..., m]`` squared distances to the own message; infinite at what is not finite."""
        own = torch.zeros_like(self.finite, dtype=torch.float64)
        own[..., 0] = 1
        return self.squared_distances_to(own).masked_fill_(~self.finite, torch.inf)

    def poisoned_weight(self) -> Tensor:
        """``[..., 1]`` the mixing weight that poisoned neighbours may have, ``b_w``.

        It is the sum of as many of the neighbours' largest weights as are taken for poisoned.
        """
        weights = self.mixing[..., 1:].sort(-1, descending=True).values
        place = torch.arange(weights.shape[-1], device=weights.device)
        return (weights * (place < self.estimate.unsqueeze(-1))).sum(-1, keepdim=True)

    def ranks(self, scores: Tensor) -> Tensor:
        """``[..., m]`` the place of every input in the order of its score, the smallest first.

        Of ties the lowest agent comes first. Slots that are no inputs come last.

        Args:
            scores: ``[..., m]`` numbers from zero, perhaps infinite; or ``[..., r, m]``, to be
                sorted row by row.
        """
        mask, index = self.mask, self.index
        if scores.ndim > mask.ndim:
            mask, index = mask.unsqueeze(-2), index.unsqueeze(-2)
        values, order = scores.masked_fill(~mask, torch.inf).sort(-1)
        larger = values[..., 1:] > values[..., :-1] * (1 + TIE)
        tied = (~larger & (values[..., 1:] < torch.inf)).any(-1)
        last = values.gather(-1, (mask.sum(-1, keepdim=True) - 1).expand(*tied.shape, 1))
        unclear = tied | ~(last < torch.inf).squeeze(-1)
        if not answered_at_once() or bool(unclear.any()):
            level = torch.empty_like(order).scatter_(-1, order, pad(larger.cumsum(-1), (1, 0)))
            level = level.masked_fill_(~mask, level.shape[-1])
            order = ((level << 32) | index).argsort(-1)
        places = torch.arange(order.shape[-1], device=order.device).expand_as(order)
        return torch.empty_like(order).scatter_(-1, order, places)

    def lowest_index(self, chosen: Tensor) -> Tensor:
        """``[..., m]`` one-hot: of the slots ``chosen``, the one of the lowest agent."""
        beyond = torch.iinfo(self.index.dtype).max
        slot = self.index.masked_fill(~chosen, beyond).argmin(-1, keepdim=True)
        return torch.zeros_like(chosen).scatter_(-1, slot, True)

    def largest(self, scores: Tensor) -> Tensor:
        """``[..., m]`` one-hot: the slot with the largest score, of ties the lowest agent's."""
        best = scores.amax(-1, keepdim=True)
        margin = (best.abs() * TIE).nan_to_num_(posinf=0)
        return self.lowest_index(scores >= best - margin)

    def smallest(self, scores: Tensor) -> Tensor:
        """``[..., m]`` one-hot: the slot with the smallest score, of ties the lowest agent's."""
        return self.largest(-scores)


def squared_distances_to(gram: Tensor, combinations: Tensor) -> Tensor:
    """``[..., c, m]`` squared distances of inputs to combinations of them.

    Args:
        gram: ``[..., m, m]`` the inputs' inner products.
        combinations: ``[..., c, m]`` weights that sum to one.
    """
    products = combinations @ gram
    norm = (products * combinations).sum(-1, keepdim=True)
    diagonal = gram.diagonal(dim1=-2, dim2=-1).unsqueeze(-2)
    return diagonal.sub(products, alpha=2).add_(norm).clamp_(min=0)


def length(gram: Tensor, difference: Tensor) -> Tensor:
    """``[..., 1]`` the length of a combination whose weights ``[..., m]`` sum to zero."""
    products = (gram @ difference.unsqueeze(-1)).squeeze(-1)
    return (products * difference).sum(-1, keepdim=True).clamp_(min=0).sqrt_()


def pairwise(gram: Tensor) -> Tensor:
    """``[..., m, m]`` squared distances from a Gram matrix."""
    diagonal = gram.diagonal(dim1=-2, dim2=-1)
    return (diagonal.unsqueeze(-1) + diagonal.unsqueeze(-2) - 2 * gram).clamp_(min=0)


def cosines(gram: Tensor) -> Tensor:
    """``[..., m, m]`` cosine similarities from a Gram matrix; zero where there is nothing."""
    norms = gram.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
    scale = norms.unsqueeze(-1) * norms.unsqueeze(-2)
    return torch.where(scale > 0, gram / scale.clamp(min=torch.finfo(gram.dtype).tiny), 0)


def normalised(weights: Tensor) -> Tensor:
    """``weights`` scaled to sum to one over the last dimension."""
    return weights / weights.sum(-1, keepdim=True)
