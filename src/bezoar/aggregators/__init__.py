"""Aggregators: how an agent turns the models it has after the exchange into its next one.

Here belong the rules, one module a rule, each written from the seat of one agent, and what a rule
may ask about its neighbourhood. How rules are applied everywhere at once is the affair of
:mod:`bezoar.exchange`.
"""

from typing import Any

from bezoar import _options
from bezoar.aggregators._centered_clipping import CenteredClipping
from bezoar.aggregators._clipped_gossip import ClippedGossip
from bezoar.aggregators._faba import FABA
from bezoar.aggregators._ios import IOS
from bezoar.aggregators._krum import Krum
from bezoar.aggregators._lfighter import LFighter
from bezoar.aggregators._local import Local
from bezoar.aggregators._mean import Mean
from bezoar.aggregators._median import Median
from bezoar.aggregators._neighbourhood import (
    Neighbourhood,
    OutputLayer,
    OutputLayers,
    pairwise,
)
from bezoar.aggregators._rfa import RFA
from bezoar.aggregators._rule import (
    REMEMBERED,
    Aggregator,
    CoordinateAggregator,
    Estimate,
    WeightedAggregator,
)
from bezoar.aggregators._trimmed_mean import TrimmedMean
from bezoar.aggregators._weighted_mean import WeightedMean

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
    "REMEMBERED",
    "RFA",
    "Aggregator",
    "CenteredClipping",
    "ClippedGossip",
    "CoordinateAggregator",
    "Estimate",
    "Krum",
    "LFighter",
    "Local",
    "Mean",
    "Median",
    "Neighbourhood",
    "OutputLayer",
    "OutputLayers",
    "TrimmedMean",
    "WeightedAggregator",
    "WeightedMean",
    "create",
    "pairwise",
]


def create(name: str, **options: Any) -> Aggregator:
    """The aggregator called ``name``, made with the given options."""
    return _options.create("aggregator", name, AGGREGATORS, options)
