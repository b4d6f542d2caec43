"""RFA: the geometric median."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._options import AtLeastOne, Positive
from bezoar._questions import answered_at_once, some
from bezoar.aggregators._neighbourhood import (
    Neighbourhood,
    length,
    normalised,
    squared_distances_to,
)
from bezoar.aggregators._rule import FinitePositive, WeightedAggregator

#: Distances below this share of the inputs' distance to the reference cannot be told from zero.
ROUNDING = 1e-7

#: Neighbourhoods up to this size are worth solving a linear system for.
NEWTON = 64

#: Neighbourhoods that are done are set aside when their Gram matrices have more entries than this.
FEWER = 1 << 12

#: Steps that are taken where asking whether all medians are found would make the host wait.
ROUNDS = 24

#: Smoothing below which a median that is one of the inputs is taken to be that input.
SHARP = 1e-4

#: A formula gives the median of three inputs, unless it would divide by less than this share of
#: their squared distances.
CLEAR = 1e-6

#: The smoothing changes nothing where every input's closeness is below this share of its inverse.
BARELY = 1 - 1e-9

#: A Newton step must lower the sum of distances by this share: of medians that are not unique,
#: as of two inputs, Weiszfeld's is meant.
GAIN = 1e-13


@dataclass(frozen=True)
class RFA(WeightedAggregator):
    """`RFA <https://arxiv.org/abs/1912.13445>`_: the geometric median of the inputs.

    Weiszfeld's iteration: weights ``1 / max(ν, ‖y_v − s‖)``, normalised, until they settle; helped
    by Newton steps wherever these get lower, for towards some medians Weiszfeld creeps. The
    smoothing ``ν`` starts at the reach of all inputs and falls to a small share of the reach of
    half of them, so that an iterate which happens to meet an input is not held there, and so that
    no minority can raise it. A median that is one of the inputs, or that of three, is found at
    once. Inputs that are not finite are left out; with nothing finite the output is NaN.

    Args:
        smoothing: the final ``ν`` as a share of how far the nearest half of the inputs reaches.
        tolerance: the iteration stops when it moves by no more than this share of that reach.
        iterations: it stops after this many steps at the latest.
    """

    smoothing: FinitePositive = 1e-6
    tolerance: Positive = 1e-5
    iterations: AtLeastOne = 1000

    name: ClassVar[str] = "rfa"
    label: ClassVar[str] = "RFA"
    colour: ClassVar[str] = "#882255"
    marker: ClassVar[str] = "X"
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = True

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        usable = neighbourhood.finite | (
            neighbourhood.mask & ~neighbourhood.finite.any(-1, keepdim=True)
        )
        both = usable.unsqueeze(-1) & usable.unsqueeze(-2)
        squared = neighbourhood.squared_distances()
        reach = _reach_of_half(squared, both, usable)
        known = _median_inputs(neighbourhood, squared, both).to(torch.float64)
        if self.smoothing <= SHARP:
            inside = _median_of_three(squared * both, usable)
            known = torch.where(known.any(-1, keepdim=True), known, inside)
        else:
            known *= reach <= ROUNDING * neighbourhood.sizes()
        done = known.any(-1, keepdim=True)
        ones = usable.to(torch.float64)
        place = normalised(ones)
        distances = neighbourhood.squared_distances_to(place).sqrt_()
        assert neighbourhood.gram is not None
        return self._search(
            _Search(
                *(neighbourhood.gram, squared, ones, reach.amin(-1, keepdim=True)),
                *(place, distances, distances.mul(ones).amax(-1, keepdim=True)),
                *(torch.where(done, normalised(known), place), done, torch.zeros_like(done)),
                torch.zeros_like(distances[..., :1]),
            ).in_rows()
        ).view(place.shape)

    def _search(self, here: "_Search") -> Tensor:
        """``[n, m]`` the weights of the medians."""
        found, rows = here.weights, torch.arange(len(here.done), device=here.done.device)
        rounds = self.iterations if answered_at_once() else min(self.iterations, ROUNDS)
        for step in range(rounds):
            coarse = torch.maximum(here.coarse / 32, self.smoothing * here.typical)
            closeness = here.ones / torch.maximum(here.distances, coarse)
            new = normalised(closeness)
            # Who is done stays, however long others beside it take.
            weights = torch.where(here.done, here.weights, new)
            here = replace(here, coarse=coarse, weights=weights, done=here.done | here.settled)
            if answered_at_once():
                left = (~here.done.squeeze(-1)).nonzero().squeeze(-1)
                if not len(left):
                    break
                if (len(rows) - len(left)) * here.gram[0].numel() > FEWER:
                    found[rows] = weights
                    rows, here = rows[left], here.of(left)
                    closeness, new = closeness[left], new[left]
            here = self._moved(here, closeness, new, step)
        found[rows] = here.weights
        if rounds < self.iterations:
            some(~here.done)  # the rest of the iterations may be needed
        return found

    def _moved(self, here: "_Search", closeness: Tensor, new: Tensor, step: int) -> "_Search":
        """The search a step on: where Weiszfeld's iteration goes, ``new``, or further."""
        tries = new.unsqueeze(-2)
        if step > 0 and new.shape[-1] <= NEWTON:
            jump = _newton_step(here.squared, here.distances, here.place, closeness, here.coarse)
            # From near a cluster Newton leaps too far, and Weiszfeld creeps.
            short, long = here.place.lerp(jump, 1 / 16), here.place.lerp(new, 16)
            tries = torch.stack([new, jump, short, long], dim=-2)
        found = squared_distances_to(here.gram, tries).sqrt_()
        sums = (found @ here.ones.unsqueeze(-1)).nan_to_num_(nan=torch.inf)
        sums[..., 0, :] *= 1 - GAIN
        best = sums.argmin(-2, keepdim=True)
        which = best.expand(*new.shape[:-1], 1, new.shape[-1])
        new, distances = tries.gather(-2, which).squeeze(-2), found.gather(-2, which).squeeze(-2)
        move = length(here.gram, new - here.place)
        settled, newtons = here.settled, (best == 1).squeeze(-1)
        if step > 1:
            smoothed = (closeness * here.coarse > BARELY).any(-1, keepdim=True)
            smoothed &= here.coarse > self.smoothing * here.typical
            # Newton's steps fall quadratically, so two of them tell how long the next one is.
            following = move * (move / here.move).square()
            limit = self.tolerance * here.typical
            settled = ((move <= limit) | (newtons & (8 * following <= limit))) & ~smoothed
        return replace(here, place=new, distances=distances, settled=settled, move=move * newtons)


@dataclass(frozen=True)
class _Search:
    """The search for some medians.

    Attributes:
        gram: ``[..., m, m]`` the inputs' inner products.
        squared: ``[..., m, m]`` their squared distances.
        ones: ``[..., m]`` one at inputs that are usable, zero elsewhere.
        typical: ``[..., 1]`` how far the nearest half of the inputs reaches.
        place: ``[..., m]`` where the search is, as weights.
        distances: ``[..., m]`` from there to the inputs.
        coarse: ``[..., 1]`` the smoothing.
        weights: ``[..., m]`` the medians, as far as they are known.
        done: ``[..., 1]`` whether they are.
        settled: ``[..., 1]`` whether the next step would be a short one.
        move: ``[..., 1]`` the length of the last step if that was Newton's, else zero.
    """

    gram: Tensor
    squared: Tensor
    ones: Tensor
    typical: Tensor
    place: Tensor
    distances: Tensor
    coarse: Tensor
    weights: Tensor
    done: Tensor
    settled: Tensor
    move: Tensor

    def in_rows(self) -> "_Search":
        """With one leading dimension."""
        leading = self.place.ndim - 1
        parts = {name: each.flatten(0, leading - 1) for name, each in vars(self).items()}
        return _Search(**parts)

    def of(self, rows: Tensor) -> "_Search":
        """The search in some neighbourhoods, of a search in rows."""
        return _Search(**{name: each.index_select(0, rows) for name, each in vars(self).items()})


def _newton_step(
    squared: Tensor, distances: Tensor, place: Tensor, closeness: Tensor, smoothing: Tensor
) -> Tensor:
    """``[..., m]`` where Newton's method goes from ``place``, as weights that sum to one.

    With ``b_v = s − y_v`` and ``c_v`` the closeness, the gradient of the sum of distances is
    ``Σ c_v b_v`` and its Hessian ``Σ c_v I − Σ c_v³ b_v b_vᵀ``, the last only over inputs beyond
    the smoothing. The step lies in the span of the ``b_v``, so it takes as many unknowns as there
    are inputs. ``2 b_uᵀ b_v`` is ``‖b_u‖² + ‖b_v‖² − ‖y_u − y_v‖²``.
    """
    away = distances.square()
    about = away.unsqueeze(-1) + away.unsqueeze(-2) - squared
    beyond = closeness * smoothing < 1
    system = about.mul_((closeness**3).mul_(beyond).unsqueeze(-1))
    system.diagonal(dim1=-2, dim2=-1).sub_(closeness.sum(-1, keepdim=True), alpha=2)
    step, _ = torch.linalg.solve_ex(system, 2 * closeness)
    step = step.contiguous()  # in any other layout sums would depend on how many are solved at once
    jump: Tensor = place * (1 + step.sum(-1, keepdim=True)) - step
    return jump


def _reach_of_half(squared: Tensor, both: Tensor, usable: Tensor) -> Tensor:
    """``[..., m]`` how far from each input one must go to meet more than half of all.

    Args:
        squared: ``[..., m, m]`` squared distances.
        both: ``[..., m, m]`` whether both are usable.
        usable: ``[..., m]`` which inputs are.
    """
    ordered = squared.masked_fill(~both, torch.inf).sort(-1).values
    half = (usable.sum(-1, keepdim=True) // 2).unsqueeze(-1).expand(*usable.shape, 1)
    return ordered.gather(-1, half).squeeze(-1).masked_fill_(~usable, torch.inf).sqrt_()


def _median_inputs(neighbourhood: Neighbourhood, squared: Tensor, both: Tensor) -> Tensor:
    """``[..., m]`` the inputs that are themselves the median, and the only one.

    They are, when the unit vectors towards all others, added up, are shorter than the number of
    inputs equal to them; so they are when more than half of all are equal, but for rounding.

    Args:
        neighbourhood: the inputs.
        squared: ``[..., m, m]`` their squared distances.
        both: ``[..., m, m]`` whether both are usable.
    """
    assert neighbourhood.gram is not None
    limit = (ROUNDING * neighbourhood.sizes()).square_().unsqueeze(-1)
    apart = both & (squared > limit)
    pulls = torch.where(apart, squared.rsqrt(), 0)
    pulls.diagonal(dim1=-2, dim2=-1).sub_(pulls.sum(-1))
    pulled = ((pulls @ neighbourhood.gram) * pulls).sum(-1)
    usable = both.diagonal(dim1=-2, dim2=-1)
    equal = (usable.sum(-1, keepdim=True) - apart.sum(-1)).to(torch.float64)
    return (pulled < (equal - ROUNDING).square_()) & usable


def _median_of_three(squared: Tensor, usable: Tensor) -> Tensor:
    """``[..., m]`` the median of three inputs, by weights; zeros where the formula is not used.

    It is Fermat's point, from which all sides of the triangle are seen under 120 degrees: with
    ``S`` the area, the weight of an input between sides ``b`` and ``c``, opposite ``a``, is
    inverse to ``4S + √3 (b² + c² − a²)``. Where an angle is wider, it is that corner.

    Args:
        squared: ``[..., m, m]`` squared distances, zero where not usable.
        usable: ``[..., m]`` which inputs are.
    """
    beside = squared.sum(-1)  # b² + c²
    total = beside.sum(-1, keepdim=True) / 2
    area = total.square() - 2 * ((total - beside) * usable).square().sum(-1, keepdim=True)
    area = area.clamp_(min=0).sqrt_()  # 4S
    angles = area + math.sqrt(3) * (2 * beside - total)
    told = ((angles > CLEAR * total) & (area > CLEAR * total)) | ~usable
    told = told.all(-1, keepdim=True) & (usable.sum(-1, keepdim=True) == 3)
    return (1 / angles).masked_fill_(~(usable & told), 0)
