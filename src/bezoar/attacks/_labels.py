"""Attacks on labels: the protocol is followed, the labels are wrong."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from bezoar._arrays import Bools, Ints
from bezoar._errors import BezoarError
from bezoar._options import Count, Share
from bezoar.attacks._attack import Attack, Judge, Knowledge, OwnData


@dataclass(frozen=True)
class LabelAttack(Attack):
    """A corruption of labels.

    Args:
        fraction: the share of the eligible samples that get a corrupted label, drawn at random.
    """

    fraction: Share = 1.0

    def on_labels(self, own: OwnData, rng: np.random.Generator) -> tuple[Ints, Bools]:
        touched = self.touched(own.labels, rng)
        corrupted = self.corrupt(own.labels, own.classes, rng)
        return np.where(touched, corrupted, own.labels), touched & self.dynamic

    def touched(self, labels: Ints, rng: np.random.Generator) -> Bools:
        """``[n]`` which samples get a corrupted label."""
        eligible = rng.permutation(np.flatnonzero(self.eligible(labels)))
        touched = np.zeros(len(labels), dtype=np.bool_)
        touched[eligible[: round(self.fraction * len(eligible))]] = True
        return touched

    def eligible(self, labels: Ints) -> Bools:
        """``[n]`` which samples the attack is about."""
        return np.ones(len(labels), dtype=np.bool_)

    @abstractmethod
    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        """``[n]`` the corrupted labels, as if all samples were touched."""

    def check_class(self, option: str, classes: int) -> None:
        """Refuse an option that is no class."""
        found = getattr(self, option)
        if found >= classes:
            raise BezoarError(
                f"attack {self.name}: {option} {found} is not a class; allowed: 0 … {classes - 1}"
            )


@dataclass(frozen=True)
class LabelFlip(LabelAttack):
    """Class ``b`` becomes ``B − 1 − b``, with ``B`` the number of classes."""

    name: ClassVar[str] = "label_flip"

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        return classes - 1 - labels


@dataclass(frozen=True)
class _ByScores(LabelAttack):
    """Labels that are chosen anew in every iteration, by scores.

    Scores that are as low, or as high, as the extreme one up to the share ``tie`` of the scores'
    range count as equal, and the lowest class of them is taken: early in training classes are
    equally likely but for rounding.
    """

    tie: ClassVar[float] = 1e-5

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        return labels  # what they become is decided in training

    def _lowest(self, scores: Tensor) -> Tensor:
        """``[..., 1, n]`` the class of the lowest of the scores ``[..., classes, n]``."""
        low, high = scores.aminmax(dim=-2, keepdim=True)
        as_low = scores <= low + self.tie * (high - low)
        return as_low.to(torch.uint8).argmax(-2, keepdim=True)


@dataclass(frozen=True)
class DynamicLabelFlip(_ByScores):
    """In every iteration the label is the least likely class under a current model.

    Args:
        judge: whose model that is: the poisoned agent's ``"own"``, or the ``"average"`` of the
            regular agents, which poisoned agents that collude may know.
    """

    judge: Literal["own", "average"] = "own"

    name: ClassVar[str] = "dynamic_label_flip"

    @property
    def knowledge(self) -> Knowledge:
        return "own" if self.judge == "own" else "everything"

    @property
    def judge_of_labels(self) -> Judge:
        return "own_model" if self.judge == "own" else "average_model"

    def on_scores(self, scores: Tensor) -> Tensor:
        return self._lowest(scores)


@dataclass(frozen=True)
class WorstLabels(_ByScores):
    """In every iteration the labels whose gradient opposes the regular agents' gradient most.

    A sample ``a`` gets the class ``argmin_c ⟨∇ℓ(x; a, c), g⟩``. Only the part of the gradient that
    comes from the label depends on it; of softmax regression, with ``G`` the matrix form of ``g``,
    it is ``−[G a]_c``, so the class is ``argmax_c [G a]_c``. No labels give a smaller inner product
    in this iteration: it is the strongest label attack for a single step. It is for softmax
    regression.

    Args:
        knows: ``"everything"``: ``g = ∇f(x̄)``, with ``f`` the regular agents' cost and ``x̄`` their
            average model; ``"own"``: the gradient over all the poisoned agent's own samples with
            their true labels, at its own model.
    """

    # Here it is an option.
    knows: Literal["everything", "own"] = field(default="everything", kw_only=True)  # type: ignore[misc]

    name: ClassVar[str] = "worst_labels"

    @property
    def judge_of_labels(self) -> Judge:
        return "own_gradient" if self.knows == "own" else "regular_gradient"

    def on_scores(self, scores: Tensor) -> Tensor:
        return self._lowest(-scores)


@dataclass(frozen=True)
class RandomLabels(LabelAttack):
    """Every label becomes one of the other classes, all equally likely."""

    name: ClassVar[str] = "random_labels"

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        return (labels + rng.integers(1, classes, size=len(labels))) % classes


@dataclass(frozen=True)
class Targeted(LabelAttack):
    """Samples of one class are labelled as another.

    Args:
        fraction: the share of the source class that is relabelled.
        source: the class whose samples are relabelled.
        target: the class they are given.
    """

    source: Count = 0
    target: Count = 1

    name: ClassVar[str] = "targeted"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source == self.target:
            raise BezoarError(f"target: must differ from source, found {self.target} for both")

    def check(self, classes: int) -> None:
        self.check_class("source", classes)
        self.check_class("target", classes)

    def eligible(self, labels: Ints) -> Bools:
        return np.equal(labels, self.source)

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        return np.full_like(labels, self.target)


@dataclass(frozen=True)
class NextClass(LabelAttack):
    """Class ``b`` becomes ``b + 1``, and the last class the first."""

    name: ClassVar[str] = "next_class"

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        return (labels + 1) % classes


@dataclass(frozen=True)
class Permuted(LabelAttack):
    """Class ``b`` becomes ``π(b)``, with a permutation ``π`` that leaves no class as it is.

    Args:
        shared: whether all poisoned agents have the same permutation, which follows from the number
            of classes. Otherwise each draws its own.
    """

    shared: bool = True

    name: ClassVar[str] = "permuted"

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        order = (np.random.default_rng(classes) if self.shared else rng).permutation(classes)
        # Each class becomes the next one in the drawn order: one cycle, in which nothing stays.
        permuted = np.empty(classes, dtype=np.int64)
        permuted[order] = np.roll(order, -1)
        return permuted[labels]
