"""Rules that return the mean of the inputs that agree best: of all sets without ``Q_w`` of them."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from bezoar.aggregators._neighbourhood import TIE, Neighbourhood, normalised
from bezoar.aggregators._rule import EstimatingAggregator

#: With up to this many inputs every set is tried.
ENUMERATED = 12


@dataclass(frozen=True)
class LeastSubset(EstimatingAggregator):
    """The mean of the ``N̄_w − Q_w`` inputs that are least spread.

    With up to 12 inputs all sets of that size are tried. With more, one set for each input: that of
    the inputs nearest to it. Of equally good sets the one with the lowest agents is taken. Inputs
    that are not finite are dropped first; the output is NaN only where more of them come in.
    """

    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = True

    @abstractmethod
    def spread(self, squared: Tensor, members: Tensor, possible: Tensor) -> Tensor:
        """``[..., s]`` how far the members of each set are spread.

        Args:
            squared: ``[..., m, m]`` squared distances between the inputs.
            members: ``[..., s, m]`` the sets, one where an input is a member and zero elsewhere.
            possible: ``[..., s]`` the sets that matter; what is returned for others is not used.
        """

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        # Inputs in the order of their agents, the rest behind them.
        index = neighbourhood.index.masked_fill(~neighbourhood.mask, 1 << 62)
        order = index.expand(neighbourhood.finite.shape).argsort(-1)
        slots = order.shape[-1]
        squared = neighbourhood.squared_distances()
        squared = squared.gather(-2, order.unsqueeze(-1).expand_as(squared))
        squared = squared.gather(-1, order.unsqueeze(-2).expand_as(squared))
        present = neighbourhood.mask.expand(order.shape).gather(-1, order)
        bad = present & ~neighbourhood.finite.gather(-1, order)
        size = neighbourhood.size.unsqueeze(-1)
        dropped = neighbourhood.estimate.unsqueeze(-1)
        few = min(slots, ENUMERATED)
        sets, missing = _sets(few, min(neighbourhood.largest_estimate, few), squared.device)
        members = sets & present[..., :few].unsqueeze(-2)
        possible = (missing == dropped) & (members.sum(-1) == size - dropped)
        narrow = squared[..., :few, :few]
        kept = self._best(narrow, members, possible, bad[..., :few])
        if slots > few:
            far = bad.unsqueeze(-1) | bad.unsqueeze(-2) | ~present.unsqueeze(-2)
            far.diagonal(dim1=-2, dim2=-1).fill_(False)
            order_of_each = squared.masked_fill(far, torch.inf).argsort(stable=True, dim=-1)
            place = order_of_each.argsort(-1)
            nearest = (place < (size - dropped).unsqueeze(-1)) & present.unsqueeze(-2)
            many = self._best(squared, nearest, present, bad)
            kept = pad(kept, (0, slots - few))
            kept = torch.where(size <= ENUMERATED, kept, many)
        chosen = torch.zeros_like(present).scatter_(-1, order, kept)
        return normalised(chosen.to(torch.float64))

    def _best(self, squared: Tensor, members: Tensor, possible: Tensor, bad: Tensor) -> Tensor:
        """``[..., m]`` the first of the possible sets that are least spread.

        Args:
            squared: ``[..., m, m]`` squared distances between the inputs.
            members: ``[..., s, m]`` the sets.
            possible: ``[..., s]`` which of them are allowed.
            bad: ``[..., m]`` which inputs are not finite.
        """
        # If every set has members that are not finite, those with the fewest are allowed.
        found = (members & bad.unsqueeze(-2)).sum(-1)
        fewest = found.masked_fill(~possible, members.shape[-1] + 1).amin(-1, keepdim=True)
        allowed = possible & (found <= fewest)
        spread = self.spread(squared, members.to(torch.float64), allowed)
        spread = spread.masked_fill(~allowed, torch.inf)
        least = spread.amin(-1, keepdim=True)
        first = (spread <= least * (1 + TIE)).to(torch.uint8).argmax(-1, keepdim=True)
        return members.gather(-2, first.unsqueeze(-1).expand(*first.shape, members.shape[-1]))[
            ..., 0, :
        ]


@cache
def _sets(inputs: int, most: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """``[s, inputs]`` every set that lacks ``most`` inputs or fewer, and ``[s]`` how many it lacks.

    Of sets that lack as many the one with the lowest members comes first.
    """
    found = [
        (kept, missing)
        for missing in range(most + 1)
        for kept in combinations(range(inputs), inputs - missing)
    ]
    sets = torch.zeros(len(found), inputs, dtype=torch.bool)
    for row, (kept, _) in zip(sets, found, strict=True):
        row[list(kept)] = True
    return sets.to(device), torch.tensor([missing for _, missing in found], device=device)
