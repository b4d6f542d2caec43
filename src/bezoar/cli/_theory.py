"""``bezoar theory``: what the theory says of a network, without torch."""

from collections.abc import Sequence
from typing import Any

from bezoar import networks, theory
from bezoar._choices import read_choice
from bezoar._errors import BezoarError
from bezoar.cli._options import read_poisoned
from bezoar.cli._screen import print_json, print_page
from bezoar.networks import Network
from bezoar.report import describe, theory_page


def show_theory(network: str, poisoned: str | None, rules: Sequence[str], json: bool) -> None:
    """Print what the theory says of a network."""
    name, options = _choice("network", network)
    who = None if poisoned is None else read_poisoned(poisoned)
    made = networks.create_poisoned(name, options, who)
    asked = [_rule(text, made) for text in rules]
    names = {rule["aggregator"] for rule in asked}
    found = theory.overview(made, _common_mixing(asked), names)
    if json:
        print_json(found | {"rules": asked})
        return
    impossible = [rule["impossible"] for rule in asked if rule["impossible"]]
    unknown = names - {"weighted_mean", *theory.MATRIX_OF}
    notes = [f"{rule}: no contraction constant ρ is known." for rule in sorted(unknown)]
    print_page(theory_page(f"{network}: {describe(made)}", made, found, [*impossible, *notes]))


def _choice(field: str, text: str) -> tuple[str, dict[str, Any]]:
    try:
        return read_choice(text)
    except BezoarError as error:
        raise BezoarError(f"{field}: {error}") from None


def _rule(text: str, network: Network) -> dict[str, Any]:
    """A rule on this network: its name, its mixing matrix, and why it cannot be applied, if so."""
    from bezoar import aggregators  # imports torch

    name, options = _choice("aggregator", text)
    rule = aggregators.create(name, **options)
    impossible = None
    try:
        rule.check(network)
    except BezoarError as error:
        impossible = str(error)
    return {"aggregator": name, "mixing": options.get("mixing"), "impossible": impossible}


def _common_mixing(rules: Sequence[dict[str, Any]]) -> str:
    """The mixing matrix that the rules ask for; a page is about one matrix only."""
    asked = list(dict.fromkeys(rule["mixing"] for rule in rules if rule["mixing"]))
    if len(asked) > 1:
        raise BezoarError(
            f"aggregator: expected one mixing matrix for all rules, found {' and '.join(asked)}"
        )
    return asked[0] if asked else "metropolis"
