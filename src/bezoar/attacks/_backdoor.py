"""Backdoors: a patch on images that stands for a class."""

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bezoar._arrays import Bools, Ints
from bezoar._errors import BezoarError
from bezoar._options import AtLeastOne, Count
from bezoar.attacks._labels import LabelAttack


@dataclass(frozen=True)
class Backdoor(LabelAttack):
    """`Backdoor <https://arxiv.org/abs/1708.06733>`_: images with a patch are labelled as a target.

    The patch is a square of the brightest pixels in the lower right corner. A model that learned it
    takes any image with the patch for the target class; how often is the metric
    ``backdoor_success``. It is for images, or for pixels that make a square.

    Args:
        fraction: the share of the images of other classes than the target that get the patch and
            the target for a label, drawn at random.
        target: the class that they are given.
        size: the pixels on a side of the patch.
    """

    target: Count = 0
    size: AtLeastOne = 3

    name: ClassVar[str] = "backdoor"

    def check(self, classes: int) -> None:
        self.check_class("target", classes)

    def check_samples(self, samples: NDArray[np.generic]) -> None:
        height, width = _height_and_width(samples.shape[1:])
        if samples.dtype != np.uint8 or height == 0:
            raise BezoarError(
                f"attack {self.name}: needs images [channels, height, width] or as many pixels as "
                f"make a square, found samples of {samples.dtype} of shape "
                f"{list(samples.shape[1:])}"
            )
        if self.size > min(height, width):
            raise BezoarError(
                f"attack {self.name}: size {self.size} is more than images of {height} × {width} "
                "pixels have on a side"
            )

    def eligible(self, labels: Ints) -> Bools:
        return np.not_equal(labels, self.target)

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        return np.full_like(labels, self.target)

    def patch(self, shape: tuple[int, ...]) -> Bools:
        pixels = np.zeros((*shape[:-2], *_height_and_width(shape)), dtype=np.bool_)
        pixels[..., -self.size :, -self.size :] = True
        return pixels.reshape(shape)


def _height_and_width(shape: tuple[int, ...]) -> tuple[int, int]:
    """The pixels on the sides of an image, or of a square of pixels; zeros if it is neither."""
    if len(shape) == 3:
        return shape[1], shape[2]
    side = isqrt(shape[0])
    return (side, side) if side * side == shape[0] else (0, 0)
