"""Exchange: rules applied at every agent at once, or at one agent to what it received."""

from bezoar.exchange._exchange import Exchange, exchange_once, is_dense
from bezoar.exchange._one_agent import aggregate_at
from bezoar.exchange._sent import FalseMessages, Sent
from bezoar.exchange._tuning import Map, Tuning

__all__ = [
    "Exchange",
    "FalseMessages",
    "Map",
    "Sent",
    "Tuning",
    "aggregate_at",
    "exchange_once",
    "is_dense",
]
