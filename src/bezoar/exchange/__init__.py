"""Exchange: rules applied at all agents of all runs at once, or at one agent.

Here belongs how rules are computed: inner products, gathered neighbourhoods, sorted coordinates,
and which of these ways costs least. What a rule is belongs to :mod:`bezoar.aggregators`.
"""

from bezoar.exchange._exchange import Exchange, exchange_once, is_dense
from bezoar.exchange._links import Links, listening_matrix
from bezoar.exchange._one_agent import aggregate_at
from bezoar.exchange._output_layers import layer_of
from bezoar.exchange._sent import FalseMessages, Sent, UpdateSums
from bezoar.exchange._tuning import Map, Tuning

__all__ = [
    "Exchange",
    "FalseMessages",
    "Links",
    "Map",
    "Sent",
    "Tuning",
    "UpdateSums",
    "aggregate_at",
    "exchange_once",
    "is_dense",
    "layer_of",
    "listening_matrix",
]
