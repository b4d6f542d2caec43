"""One seed tree: every random choice of a run grows from its seed, and none from global state."""

from enum import IntEnum

import numpy as np


class Branch(IntEnum):
    """What a branch of the seed tree is for. Numbers are part of a run's identity."""

    PARTITION = 1
    ATTACK = 2
    COSTS = 3


def generator(seed: int, branch: Branch, *path: int) -> np.random.Generator:
    """The random generator at one place of the tree, the same in any process and order."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(branch, *path)))
