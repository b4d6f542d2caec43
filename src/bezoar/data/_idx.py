"""The IDX format, in which MNIST and datasets like it are published."""

import numpy as np
from numpy.typing import NDArray


def parse_idx(content: bytes) -> NDArray[np.uint8]:
    """An array of bytes in the IDX format: two zeros, type 8, rank, then the sizes, big-endian."""
    rank = content[3]
    shape = np.frombuffer(content, dtype=">u4", count=rank, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)
