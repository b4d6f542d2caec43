"""Augmentation of images: random crops and flips."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

#: Pixels added on every side before an image is cropped to its size again.
PADDING = 4


def crop_and_flip(images: NDArray[np.generic], rng: np.random.Generator) -> NDArray[np.generic]:
    """Move images ``[n, channels, height, width]`` by up to four pixels, mirror half, at random.

    An image is padded with zeros (black pixels) and mirrored left to right with probability one
    half; then a part of its former size is cut out, each as likely.
    """
    count, channels, height, width = images.shape
    down, right = rng.integers(0, 2 * PADDING + 1, size=(2, count))
    mirrored = rng.integers(0, 2, size=count) == 1
    larger = (count, channels, height + 2 * PADDING, width + 2 * PADDING)
    padded = np.zeros(larger, images.dtype)
    padded[:, :, PADDING:-PADDING, PADDING:-PADDING] = images
    padded[mirrored] = padded[mirrored, ..., ::-1]
    windows = sliding_window_view(padded, (height, width), axis=(2, 3))
    return windows[np.arange(count), :, down, right]
