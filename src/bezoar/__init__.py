"""Bezoar: train a model together with peers when some peers' labels are poisoned.

Importing this package imports neither torch nor networkx; a room is loaded when first used::

    from bezoar import Network, networks, aggregators
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bezoar._version import __version__

if TYPE_CHECKING:
    from bezoar import (
        advice,
        aggregators,
        attacks,
        data,
        exchange,
        experiments,
        models,
        networks,
        paper,
        report,
        theory,
        training,
    )
    from bezoar._errors import BezoarError
    from bezoar._parts import register
    from bezoar.advice import advise, compare
    from bezoar.experiments import run
    from bezoar.networks import Network

__all__ = [
    "BezoarError",
    "Network",
    "__version__",
    "advice",
    "advise",
    "aggregators",
    "attacks",
    "compare",
    "data",
    "exchange",
    "experiments",
    "models",
    "networks",
    "paper",
    "register",
    "report",
    "run",
    "theory",
    "training",
]

_HOMES = {
    "BezoarError": "bezoar._errors",
    "Network": "bezoar.networks",
    "advise": "bezoar.advice",
    "compare": "bezoar.advice",
    "register": "bezoar._parts",
    "run": "bezoar.experiments",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"bezoar.{name}")
    raise AttributeError(f"module 'bezoar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
