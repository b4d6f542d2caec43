"""Attacks: what poisoned agents do to their labels."""

from typing import Any

from bezoar import _registry
from bezoar.attacks._attacks import (
    Attack,
    DynamicLabelFlip,
    LabelFlip,
    RandomLabels,
    Targeted,
)

#: Every attack by its name.
ATTACKS: dict[str, type[Attack]] = {
    kind.name: kind for kind in (LabelFlip, DynamicLabelFlip, RandomLabels, Targeted)
}

__all__ = [
    "ATTACKS",
    "Attack",
    "DynamicLabelFlip",
    "LabelFlip",
    "RandomLabels",
    "Targeted",
    "create",
]


def create(name: str, **options: Any) -> Attack:
    """The attack called ``name``, made with the given options."""
    return _registry.create("attack", name, ATTACKS, options)
