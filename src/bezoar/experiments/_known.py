"""What can be chosen in a spec, and whether a choice can be made."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from bezoar import _registry
from bezoar._errors import BezoarError

#: Fields that are a name with options.
CHOICES = ("partition", "network", "attack", "aggregator", "optimizer", "schedule")


@cache
def known() -> dict[str, Mapping[str, Any]]:
    """For each field that takes names, everything it may name."""
    # Imported when a name is first looked up: specs without names need no torch.
    from bezoar import aggregators, attacks, data, networks, training

    return {
        "dataset": data.DATASETS,
        "partition": data.PARTITIONS,
        "network": networks.NETWORKS,
        "attack": attacks.ATTACKS,
        "aggregator": aggregators.AGGREGATORS,
        "optimizer": training.OPTIMIZERS,
        "schedule": training.SCHEDULES,
        "metrics": training.METRICS,
    }


def check_name(field: str, name: str) -> None:
    """Refuse a name that the field does not know."""
    _registry.choose(field, name, known()[field])


def check_choice(field: str, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse an unknown name, an unknown option, or an option's impossible value.

    Networks are not made here, since that may take a file or a while: the values of their options
    are judged when a run is prepared.

    Returns:
        The options as their maker takes them.
    """
    table: Mapping[str, Callable[..., Any]] = known()[field]
    make = _registry.check(field, name, table, options)
    fitting = _registry.fit(make, options)
    if field == "network":
        return fitting
    try:
        make(**fitting)
    except BezoarError as error:
        raise BezoarError(f"{field} {name}: {error}") from None
    except TypeError as error:
        raise BezoarError(f"{field} {name}: an option has the wrong type: {error}") from None
    return fitting
