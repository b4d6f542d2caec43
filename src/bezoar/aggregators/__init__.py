"""Aggregators: how an agent turns the models it has after the exchange into its next one.

Here belong the rules, one module a rule, each written from the seat of one agent, and what a rule
may ask about its neighbourhood. How rules are applied everywhere at once is the affair of
:mod:`bezoar.exchange`.
"""

from typing import Any

from bezoar import _options
from bezoar.aggregators._balance import Balance
from bezoar.aggregators._before import BEFORE, Before, compose, mixed
from bezoar.aggregators._bulyan import Bulyan
from bezoar.aggregators._caf import CAF
from bezoar.aggregators._centered_clipping import CenteredClipping
from bezoar.aggregators._clipped_gossip import ClippedGossip
from bezoar.aggregators._clipped_sum import ClippedSum
from bezoar.aggregators._coordinate_rule import CoordinateAggregator, RankAggregator
from bezoar.aggregators._distance_filter import DistanceFilter
from bezoar.aggregators._divide_and_conquer import DivideAndConquer
from bezoar.aggregators._faba import FABA
from bezoar.aggregators._foolsgold import FoolsGold
from bezoar.aggregators._ios import IOS
from bezoar.aggregators._krum import Krum
from bezoar.aggregators._least_diameter import LeastDiameter
from bezoar.aggregators._least_eigenvalue import LeastEigenvalue
from bezoar.aggregators._least_variance import LeastVariance
from bezoar.aggregators._lfighter import LFighter
from bezoar.aggregators._local import Local
from bezoar.aggregators._meamed import MeaMed
from bezoar.aggregators._mean import Mean
from bezoar.aggregators._median import Median
from bezoar.aggregators._nearest import Nearest
from bezoar.aggregators._neighbourhood import (
    Neighbourhood,
    OutputLayer,
    OutputLayers,
    pairwise,
)
from bezoar.aggregators._rfa import RFA
from bezoar.aggregators._rule import (
    REMEMBERED,
    THREATS,
    Aggregator,
    Estimate,
    EstimatingAggregator,
    WeightedAggregator,
)
from bezoar.aggregators._total_variation import TotalVariation
from bezoar.aggregators._trimmed_mean import TrimmedMean
from bezoar.aggregators._trimmed_sum import TrimmedSum
from bezoar.aggregators._ubar import UBAR
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
        Nearest,
        ClippedSum,
        TrimmedSum,
        LeastDiameter,
        LeastVariance,
        LeastEigenvalue,
        CAF,
        DivideAndConquer,
        MeaMed,
        Bulyan,
        DistanceFilter,
        TotalVariation,
        UBAR,
        FoolsGold,
        Balance,
        Local,
    )
}

__all__ = [
    "AGGREGATORS",
    "BEFORE",
    "CAF",
    "FABA",
    "IOS",
    "REMEMBERED",
    "RFA",
    "THREATS",
    "UBAR",
    "Aggregator",
    "Balance",
    "Before",
    "Bulyan",
    "CenteredClipping",
    "ClippedGossip",
    "ClippedSum",
    "CoordinateAggregator",
    "DistanceFilter",
    "DivideAndConquer",
    "Estimate",
    "EstimatingAggregator",
    "FoolsGold",
    "Krum",
    "LFighter",
    "LeastDiameter",
    "LeastEigenvalue",
    "LeastVariance",
    "Local",
    "MeaMed",
    "Mean",
    "Median",
    "Nearest",
    "Neighbourhood",
    "OutputLayer",
    "OutputLayers",
    "RankAggregator",
    "TotalVariation",
    "TrimmedMean",
    "TrimmedSum",
    "WeightedAggregator",
    "WeightedMean",
    "compose",
    "create",
    "mixed",
    "pairwise",
]


def create(name: str, **options: Any) -> Aggregator:
    """The aggregator called ``name``, made with the given options.

    ``nnm+krum`` is Krum behind nearest-neighbour mixing; see :data:`BEFORE`.
    """
    *before, last = name.split("+") if isinstance(name, str) else [name]
    if not before:
        return _options.create("aggregator", name, AGGREGATORS, options)
    rule: Any = _options.choose("aggregator", last, AGGREGATORS)
    made = compose(tuple(before), rule)
    return _options.create("aggregator", name, {name: made}, options)
