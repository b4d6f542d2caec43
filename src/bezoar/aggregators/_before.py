"""What is done to the inputs before a rule: nearest-neighbour mixing, clipping, buckets.

Each replaces the inputs by combinations of them. So the inner products of what a rule then sees
follow from those of the inputs, and composing costs no further pass over the messages.
"""

import inspect
from abc import ABC, abstractmethod
from dataclasses import field, make_dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._options import Count, choose
from bezoar.aggregators._neighbourhood import Neighbourhood, normalised
from bezoar.aggregators._rule import Aggregator, Estimate, WeightedAggregator


class Before(ABC):
    """Something that is done to the inputs before a rule.

    Attributes:
        name: for specs and the command line, as in ``nnm+krum``.
        label: for legends.
        uses_estimate: whether the estimate of poisoned inputs matters to it.
        options: what a composed rule can be told about it: names, types, defaults and meanings.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    uses_estimate: ClassVar[bool] = True
    options: ClassVar[tuple[tuple[str, Any, Any, str], ...]] = ()

    @staticmethod
    @abstractmethod
    def combinations(rule: Any, seen: Neighbourhood) -> tuple[Tensor, Neighbourhood]:
        """What becomes of the inputs.

        Args:
            rule: the composed rule, which has the options.
            seen: the inputs.

        Returns:
            ``[..., m, m]`` the weights of the inputs in what is in each slot then; and the
            neighbourhood with everything but what follows from these.
        """

    @staticmethod
    def inputs_after(rule: Any, inputs: Any) -> Any:
        """How many inputs the rule then has."""
        return inputs

    @staticmethod
    def inputs_needed(rule: Any, after: Any, estimate: Any) -> Any:
        """The least number of inputs from which the rule gets as many as it needs."""
        return after


class NNM(Before):
    """`Nearest-neighbour mixing <https://arxiv.org/abs/2302.01772>`_ before a rule.

    Each input is replaced by the mean of the ``N̄_w − Q_w`` inputs nearest to it, itself included.
    An input that is not finite is infinitely far from all others; of these the lowest agents count
    as nearest to it.
    """

    name = "nnm"
    label = "NNM"

    @staticmethod
    def combinations(rule: Any, seen: Neighbourhood) -> tuple[Tensor, Neighbourhood]:
        squared = seen.finite_distances()
        squared.diagonal(dim1=-2, dim2=-1).zero_()
        ranks = seen.ranks(squared)
        kept = ranks < (seen.size - seen.estimate)[..., None, None]
        return normalised(kept.to(torch.float64)), seen

    @staticmethod
    def inputs_needed(rule: Any, after: Any, estimate: Any) -> Any:
        return np.maximum(after, estimate + 1)


class ARC(Before):
    """`Adaptive clipping <https://arxiv.org/abs/2405.14432>`_ before a rule.

    Of the differences to the own message, ``y_v − y_w``, the ``⌊2 (Q_w/N̄_w) (N̄_w − Q_w)⌋`` longest
    are clipped to the length of the next one. Nothing is clipped if the own message is not finite.
    """

    name = "arc"
    label = "ARC"

    @staticmethod
    def combinations(rule: Any, seen: Neighbourhood) -> tuple[Tensor, Neighbourhood]:
        distances = seen.distances_to_own().sqrt_()
        size, estimate = seen.size.unsqueeze(-1), seen.estimate.unsqueeze(-1)
        clipped = (2 * estimate * (size - estimate)) // size
        ranks = seen.ranks(distances)
        next_one = (distances * (ranks == size - clipped - 1)).nan_to_num_(nan=0)
        length = next_one.sum(-1, keepdim=True)
        factor = torch.where(ranks >= size - clipped, length / distances, 1.0).nan_to_num_(nan=1)
        factor = factor.masked_fill_(~(seen.mask & seen.finite[..., :1]), 1).clamp_(max=1)
        matrix = torch.diag_embed(factor)
        matrix[..., 0] += 1 - factor
        return matrix, seen


#: Far more inputs than there are, but few enough to calculate with in 64 bits.
BucketSize = Annotated[int, Field(ge=1, le=1 << 31)]


class Bucketing(Before):
    """`Bucketing <https://arxiv.org/abs/2006.09365>`_ before a rule.

    The inputs are put into buckets at random, in every iteration anew, and replaced by the buckets'
    means. The bucket with the own message takes its place.
    """

    name = "bucketing"
    label = "Bucketing"
    uses_estimate = False
    options = (
        ("bucket", BucketSize, 2, "how many inputs are put into a bucket."),
        ("bucket_seed", Count, 0, "what the random choices follow from."),
    )

    @staticmethod
    def combinations(rule: Any, seen: Neighbourhood) -> tuple[Tensor, Neighbourhood]:
        slots, size = seen.mask.shape[-1], seen.size.unsqueeze(-1)
        # By the inputs' order alone, which is the same wherever the rule is applied.
        order = seen.ranks(torch.zeros_like(seen.finite, dtype=torch.float64))
        drawn = _scrambled(order, order[..., :1], rule.bucket_seed, seen.iteration)
        drawn = drawn.masked_fill_(~seen.mask, torch.iinfo(drawn.dtype).max)
        bucket = drawn.argsort(-1).argsort(-1) // rule.bucket
        buckets = (size + rule.bucket - 1) // rule.bucket
        # Bucket 0 and that with the own message change names, so that slot 0 is the own.
        own = bucket[..., :1]
        bucket = torch.where(bucket == own, 0, torch.where(bucket == 0, own, bucket))
        number = torch.arange(slots, device=bucket.device)
        here = (bucket.unsqueeze(-2) == number.unsqueeze(-1)) & seen.mask.unsqueeze(-2)
        there = number < buckets
        matrix = here / here.sum(-1, keepdim=True).clamp(min=1).to(torch.float64)
        beyond = torch.iinfo(seen.index.dtype).max
        index = seen.index.unsqueeze(-2).masked_fill(~here, beyond).amin(-1)
        mixing = (here * seen.mixing.unsqueeze(-2)).sum(-1)
        index = torch.where(there, index, seen.index)
        changed = replace(seen, mask=there, mixing=mixing, index=index)
        return matrix.expand(*seen.finite.shape, slots), changed

    @staticmethod
    def inputs_after(rule: Any, inputs: Any) -> Any:
        return -(-inputs // rule.bucket)

    @staticmethod
    def inputs_needed(rule: Any, after: Any, estimate: Any) -> Any:
        return (after - 1) * rule.bucket + 1


#: Shifts and odd factors that scramble the bits of 64-bit numbers.
_SCRAMBLE = ((31, 0x7FB5D329728EA185), (27, 0x3C79AC492BA7B653), (33, 0x1C69B3F74AC4AE35))


def _scrambled(sender: Tensor, receiver: Tensor, seed: int, iteration: int) -> Tensor:
    """``[..., m]`` numbers from zero that look random, the same wherever they are computed."""
    start = ((seed << 32) + iteration) * 0x2545F4914F6CDD1D % 2**63
    mixed = (sender * 0x9E3779B97F4A7C1 + receiver) * 0xD1342543DE82EF9 + start
    for shift, factor in _SCRAMBLE:
        mixed = (mixed ^ (mixed >> shift)) * factor
    return mixed & torch.iinfo(mixed.dtype).max


#: Everything that can be done before a rule, by its name.
BEFORE: dict[str, type[Before]] = {each.name: each for each in (NNM, ARC, Bucketing)}


def mixed(
    steps: tuple[type[Before], ...], rule: Aggregator, seen: Neighbourhood
) -> tuple[Tensor, Neighbourhood]:
    """``[..., m, m]`` the weights of inputs in what a rule sees, and what it sees."""
    matrix: Tensor | None = None
    for step in steps:
        assert seen.gram is not None
        made, changed = step.combinations(rule, seen)
        made, known = made.clone(), changed.mask.expand(seen.finite.shape).clone()
        for slot in seen.remembered.values():  # what is remembered stays as it is
            made[..., slot, :], made[..., slot, slot], known[..., slot] = 0, 1, True
        unknown = (~seen.finite).to(made.dtype).unsqueeze(-1)
        bad = (made @ unknown).squeeze(-1) > 0  # no weight is negative
        finite = known & ~bad
        gram = _alike(made @ seen.gram @ made.mT, made)
        gram = gram.masked_fill_(~(finite.unsqueeze(-1) & finite.unsqueeze(-2)), 0)
        seen = replace(changed, finite=finite, gram=gram)
        matrix = made if matrix is None else made @ matrix
    assert matrix is not None
    return matrix, seen


def _documentation(steps: tuple[type[Before], ...], rule: type) -> str:
    """What is done before, then what the rule does, then the options that are added."""
    texts = [inspect.cleandoc(each.__doc__ or "") for each in (*steps, rule)]
    added = [f"    {name}: {said}" for step in steps for name, _, _, said in step.options]
    if any(step.uses_estimate for step in steps) and not hasattr(rule, "estimate"):
        added.append("    estimate: the number of poisoned inputs ``Q_w``, as for other rules.")
    told = [text.split("\n\nArgs:\n")[0] for text in texts]
    if added:
        told.append("\n".join(["Args:", *added]))
    return "\n\n".join(told)


def _alike(gram: Tensor, made: Tensor) -> Tensor:
    """``[..., m, m]`` inner products that are the same, to the last bit, for slots made alike.

    Mixing makes inputs equal; rules that compare them would take the last bits for differences.
    """
    slots = made.shape[-1]
    place = torch.arange(1, slots + 1, dtype=made.dtype, device=made.device)
    code = (made * place.sin()).sum(-1)
    first = (code.unsqueeze(-1) == code.unsqueeze(-2)).to(torch.uint8).argmax(-1)
    gram = gram.gather(-2, first.unsqueeze(-1).expand_as(gram))
    return gram.gather(-1, first.unsqueeze(-2).expand_as(gram))


@cache
def compose(names: tuple[str, ...], rule: Any) -> type[Aggregator]:
    """A rule behind something that is done to its inputs before, as ``nnm+krum``.

    Args:
        names: what is done, the first first.
        rule: the class of the rule.

    Raises:
        BezoarError: if there is no such thing, or if it cannot be done before the rule.
    """
    text = "+".join([*names, rule.name])
    steps = tuple(choose(f"aggregator {text}: before the rule", name, BEFORE) for name in names)
    for step in steps:
        if step.options and steps.count(step) > 1:
            raise BezoarError(
                f"aggregator {text}: {step.name} has options of one value each, so it may be there "
                f"once; found {steps.count(step)} times"
            )
    by_weights = issubclass(rule, WeightedAggregator)
    if getattr(rule, "reads", "") == "output_layer":
        raise BezoarError(
            f"aggregator {text}: {rule.name} looks at the output layers of the messages "
            "themselves, so nothing can be done to them before"
        )

    for asked in ("auxiliary", "samples_judged", "sums_updates"):
        if getattr(rule, asked) is not getattr(Aggregator, asked):
            raise BezoarError(
                f"aggregator {text}: {rule.name} looks at more of the messages themselves than "
                "their inner products, so nothing can be done to them before"
            )

    def inputs_needed(self: Any, estimate: Any) -> Any:
        needed = rule.inputs_needed(self, estimate)
        for step in reversed(steps):
            needed = step.inputs_needed(self, needed, estimate)
        return needed

    def weights(self: Any, neighbourhood: Neighbourhood) -> Tensor:
        matrix, seen = mixed(steps, self, neighbourhood)
        given = rule.weights(self, seen).unsqueeze(-2)
        found: Tensor = (given @ matrix).squeeze(-2)
        return found

    methods: dict[str, Any] = {
        "__module__": rule.__module__,
        "__doc__": _documentation(steps, rule),
        "name": text,
        "label": " + ".join([step.label for step in steps] + [rule.label or rule.name]),
        "before": steps,
        "colour": "",
        "marker": "",
        "withstands": (),
        "breakdown": None,
        "majority_dominant": None,
        "inputs_needed": inputs_needed,
    }
    if by_weights:
        methods |= {"reads": "gram", "weights": weights}
    added = [
        (option, kind, field(default=default, kw_only=True))
        for step in steps
        for option, kind, default, _ in step.options
    ]
    if any(step.uses_estimate for step in steps):
        methods["uses_estimate"] = lambda self: True
        if not hasattr(rule, "estimate"):
            added.append(("estimate", Estimate, field(default="exact", kw_only=True)))
    return make_dataclass(text, added, bases=(rule,), namespace=methods, frozen=True)
