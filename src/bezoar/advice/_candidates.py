"""Which rules there are to choose from on a network, and with which options."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bezoar._errors import BezoarError
from bezoar._options import default_options
from bezoar._parts import maker, parts_of
from bezoar.aggregators import Aggregator
from bezoar.experiments import Choice, read_choice
from bezoar.networks import Network

#: The multiples of its default that a threshold is tried at. A threshold is compared with distances
#: between models, so the right one depends on the data and the length of training.
THRESHOLDS = (1, 10)


def candidates(
    network: Network, poisoned: Sequence[int], rules: Iterable[str] = ()
) -> tuple[dict[str, Choice], dict[str, str]]:
    """The rules that can be applied at every agent, with options that an agent could choose.

    No agent knows which of its inputs are poisoned, nor how many. So a rule that needs an estimate
    is tried with two of them, unless it was given a number: one poisoned input, and the mean number
    of an agent, rounded up, if the largest number of agents in ``poisoned`` is poisoned. Larger
    numbers lose more than they save (docs/results/advisor.md). An agent whose rule cannot bear so
    many assumes fewer. By default every rule that has a name is a candidate.

    Returns:
        The candidates by how they are typed, and for each impossible rule the reason.
    """
    most = max(poisoned)
    expected = -(-most * int(network.degrees.sum()) // (network.agents * (network.agents - 1)))
    assumed = sorted({1, expected}) if most else [0]
    found: dict[object, Choice] = {}
    impossible: dict[str, str] = {}
    for text in rules or parts_of("aggregator"):
        for choice in _variants(read_choice("aggregator", text), assumed):
            rule: Aggregator = choice.make()
            try:
                rule.check(network)
            except BezoarError as error:
                impossible[str(choice)] = str(error)
                continue
            effect: object = str(choice)
            if rule.uses_estimate():  # of numbers that all agents lower to the same, one
                others = {name: v for name, v in choice.options.items() if name != "estimate"}
                effect = choice.name, str(others), rule.estimates(network).tobytes()
            found.setdefault(effect, choice)
    return {str(choice): choice for choice in found.values()}, impossible


def named(rule: Choice) -> dict[str, Any]:
    """A rule and its options, as JSON holds them."""
    return {"aggregator": rule.name, "options": dict(rule.options)}


def _variants(choice: Choice, assumed: Sequence[int]) -> list[Choice]:
    """A rule with the options to try: a threshold if none was given, and what agents assume."""
    if choice.part is not None:
        return [choice]
    defaults = default_options(maker("aggregator", choice.name))
    tried: list[dict[str, Any]] = [{}]
    if "threshold" in defaults and str(choice) == choice.name:
        tried = [{"threshold": factor * defaults["threshold"]} for factor in THRESHOLDS]
        if "estimate" in defaults:
            tried.append({"threshold": "adaptive"})
    variants = (_with(choice, values) for values in tried)
    return [each for variant in variants for each in _assuming(variant, assumed)]


def _assuming(choice: Choice, assumed: Sequence[int]) -> list[Choice]:
    """A rule with each estimate, unless it needs none or has one that an agent can know."""
    rule: Aggregator = choice.make()
    if not rule.uses_estimate() or choice.options.get("estimate") not in ("exact", "max"):
        return [choice]
    return [_with(choice, {"estimate": f"up_to_{number}"}) for number in assumed]


def _with(choice: Choice, values: Mapping[str, Any]) -> Choice:
    return read_choice("aggregator", {"name": choice.name, **choice.options, **values})
