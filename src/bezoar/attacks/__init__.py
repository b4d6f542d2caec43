"""Attacks: what poisoned agents do to their labels and to their messages.

Here belongs one class for each attack. It says what it needs to know, and returns labels or
messages. :mod:`bezoar.training` decides when it is asked.
"""

from typing import Any

from bezoar import _options
from bezoar._errors import BezoarError
from bezoar._parts import maker
from bezoar.attacks._against_consensus import Dissensus, Spectral
from bezoar.attacks._alie import ALIE
from bezoar.attacks._attack import Attack, Judge, Knowledge, OwnData, SeenMessages
from bezoar.attacks._backdoor import Backdoor
from bezoar.attacks._blunt import Gaussian, Mimic, NonFinite, Zero
from bezoar.attacks._ipm import IPM
from bezoar.attacks._labels import (
    DynamicLabelFlip,
    LabelAttack,
    LabelFlip,
    NextClass,
    Permuted,
    RandomLabels,
    Targeted,
    WorstLabels,
)
from bezoar.attacks._min_max import MinMax, MinSum
from bezoar.attacks._mix import mix
from bezoar.attacks._regular_inputs import AttackOnInputs, RegularInputs
from bezoar.attacks._sign_flip import SignFlip

#: Every attack by its name.
ATTACKS: dict[str, type[Attack]] = {
    kind.name: kind
    for kind in (
        LabelFlip,
        DynamicLabelFlip,
        WorstLabels,
        RandomLabels,
        Targeted,
        Permuted,
        NextClass,
        Backdoor,
        SignFlip,
        Dissensus,
        Spectral,
        ALIE,
        IPM,
        MinMax,
        MinSum,
        Mimic,
        Gaussian,
        Zero,
        NonFinite,
    )
}

__all__ = [
    "ALIE",
    "ATTACKS",
    "IPM",
    "Attack",
    "AttackOnInputs",
    "Backdoor",
    "Dissensus",
    "DynamicLabelFlip",
    "Gaussian",
    "Judge",
    "Knowledge",
    "LabelAttack",
    "LabelFlip",
    "Mimic",
    "MinMax",
    "MinSum",
    "NextClass",
    "NonFinite",
    "OwnData",
    "Permuted",
    "RandomLabels",
    "RegularInputs",
    "SeenMessages",
    "SignFlip",
    "Spectral",
    "Targeted",
    "WorstLabels",
    "Zero",
    "compose",
    "create",
    "mix",
]


def create(name: str, **options: Any) -> Attack:
    """The attack called ``name``, made with the given options.

    ``label_flip+dissensus`` has the labels of one and the messages of another; see :func:`mix`.
    """
    made: Attack = _options.create("attack", name, {name: maker("attack", name)}, options)
    return made


def compose(names: tuple[str, ...], messages: Any) -> type[Attack]:
    """The mix of an attack on labels, by its name, and the class of one on messages.

    Args:
        names: what stands before the last plus of the mix's name: one attack on labels.
        messages: the class of the attack on messages.
    """
    if len(names) > 1:
        told = "+".join([*names, messages.name])
        raise BezoarError(f"attack {told}: expected one plus, found {len(names)}")
    labels: Any = _options.choose("attack, before the plus", names[0], ATTACKS)
    return mix(labels, messages)
