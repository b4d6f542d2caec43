"""Attacks: what poisoned agents do to their labels and to their messages.

Here belongs one class for each attack. It says what it needs to know, and returns labels or
messages. :mod:`bezoar.training` decides when it is asked.
"""

from typing import Any

from bezoar import _options
from bezoar.attacks._attack import Attack, Knowledge, OwnData, SeenMessages
from bezoar.attacks._labels import DynamicLabelFlip, LabelAttack, LabelFlip, RandomLabels, Targeted
from bezoar.attacks._sign_flip import SignFlip

#: Every attack by its name.
ATTACKS: dict[str, type[Attack]] = {
    kind.name: kind for kind in (LabelFlip, DynamicLabelFlip, RandomLabels, Targeted, SignFlip)
}

__all__ = [
    "ATTACKS",
    "Attack",
    "DynamicLabelFlip",
    "Knowledge",
    "LabelAttack",
    "LabelFlip",
    "OwnData",
    "RandomLabels",
    "SeenMessages",
    "SignFlip",
    "Targeted",
    "create",
]


def create(name: str, **options: Any) -> Attack:
    """The attack called ``name``, made with the given options."""
    return _options.create("attack", name, ATTACKS, options)
