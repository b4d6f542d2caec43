"""Augmentation of images: random crops and flips."""

import numpy as np
from numpy.typing import NDArray

#: Pixels added on every side before an image is cropped to its size again.
PADDING = 4


def crop_and_flip(images: NDArray[np.generic], rng: np.random.Generator) -> NDArray[np.generic]:
    """Move every image by up to four pixels, and mirror every other one, at random.

    An image is padded with zeros (black pixels) and a part of its size is cut out, each as likely;
    then it is mirrored left to right with probability one half.

    Args:
        images: ``[n, channels, height, width]``.
        rng: where the random choices come from.
    """
    count, height, width = len(images), *images.shape[2:]
    moves = rng.integers(0, 2 * PADDING + 1, size=(count, 2)).tolist()
    mirrored = rng.integers(0, 2, size=count).tolist()
    around = ((0, 0), (0, 0), (PADDING, PADDING), (PADDING, PADDING))
    padded = np.pad(images, around)
    moved = np.empty_like(images)
    for image, ((down, right), turned) in enumerate(zip(moves, mirrored, strict=True)):
        part = padded[image, :, down : down + height, right : right + width]
        moved[image] = part[..., ::-1] if turned else part
    return moved
