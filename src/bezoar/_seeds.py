"""Every random choice of a run follows from its seed; none comes from a global state."""

from enum import IntEnum

import numpy as np

#: Stands for the agent where a choice of one iteration concerns all agents.
EVERYONE = 2**32 - 1


class Purpose(IntEnum):
    """What random numbers are for. The numbers are part of a run's identity: only append."""

    PARTITION = 1
    ATTACK = 2
    COSTS = 3
    BATCHES = 4
    AUGMENTATION = 5
    START = 6
    GRADIENT_SAMPLES = 7
    MODEL = 10
    SAMPLES = 11
    PLACEMENT = 12
    MESSAGES = 13
    JUDGING = 14
    SILENT_LINKS = 15
    SILENT_AGENTS = 16
    AWAKE = 17


def generator(
    seed: int, purpose: Purpose, agent: int | None = None, iteration: int | None = None
) -> np.random.Generator:
    """The random generator for one purpose, agent and iteration.

    It is a function of its arguments, the same in any process and order: nothing is ever drawn
    from a generator that somebody else has advanced.
    """
    path: tuple[int, ...] = () if agent is None else (agent,)
    if iteration is not None:
        path = (*(path or (EVERYONE,)), iteration)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, *path)))
