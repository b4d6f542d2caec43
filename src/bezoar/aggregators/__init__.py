"""Aggregators: how an agent turns the models it has after the exchange into its next one."""

from typing import Any

from bezoar import _registry
from bezoar.aggregators._averages import Local, Mean, WeightedMean
from bezoar.aggregators._base import Aggregator, CoordinateAggregator, WeightedAggregator
from bezoar.aggregators._clipping import CenteredClipping, ClippedGossip
from bezoar.aggregators._coordinates import Median, TrimmedMean
from bezoar.aggregators._exchange import Exchange, is_dense
from bezoar.aggregators._filtering import FABA, IOS
from bezoar.aggregators._krum import Krum
from bezoar.aggregators._lfighter import LFighter
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rfa import RFA

#: Every aggregator by its name.
AGGREGATORS: dict[str, type[Aggregator]] = {
    rule.name: rule
    for rule in (
        WeightedMean,
        TrimmedMean,
        FABA,
        CenteredClipping,
        ClippedGossip,
        IOS,
        RFA,
        LFighter,
        Mean,
        Median,
        Krum,
        Local,
    )
}

__all__ = [
    "AGGREGATORS",
    "FABA",
    "IOS",
    "RFA",
    "Aggregator",
    "CenteredClipping",
    "ClippedGossip",
    "CoordinateAggregator",
    "Exchange",
    "Krum",
    "LFighter",
    "Local",
    "Mean",
    "Median",
    "Neighbourhood",
    "TrimmedMean",
    "WeightedAggregator",
    "WeightedMean",
    "create",
    "is_dense",
]


def create(name: str, **options: Any) -> Aggregator:
    """The aggregator called ``name``, made with the given options."""
    return _registry.create("aggregator", name, AGGREGATORS, options)
