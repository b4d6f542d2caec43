"""``bezoar theory``: what the theory says of a network, without torch."""

from collections.abc import Mapping, Sequence
from typing import Any

from bezoar import theory
from bezoar._errors import BezoarError
from bezoar.cli._screen import print_json, print_page
from bezoar.experiments import poisoned_network, read_choice, read_poisoned
from bezoar.networks import Network
from bezoar.report import describe, notes_about, theory_page


def show_theory(given: Mapping[str, Any]) -> None:
    """Print what the theory says of a network; ``given`` is what was typed."""
    choice = read_choice("network", given["network"])
    who = None if given["poisoned"] is None else read_poisoned(given["poisoned"])
    made = poisoned_network(choice, who, given["placement"], given["seed"])
    asked = [_rule(text, made) for text in given["aggregator"] or ()]
    names = {rule["aggregator"] for rule in asked}
    found = theory.overview(made, _common_mixing(asked), names)
    if given["json"]:
        more = {"names": list(made.names), "network_note": made.note, "rules": asked}
        print_json(found | more)
        return
    impossible = [rule["impossible"] for rule in asked if rule["impossible"]]
    unknown = names - {"weighted_mean", *theory.MATRIX_OF}
    notes = [f"{rule}: no contraction constant ρ is known." for rule in sorted(unknown)]
    told = [*impossible, *notes, *notes_about("", "", choice, made.note)]
    print_page(theory_page(f"{given['network']}: {describe(made)}", made, found, told))


def _rule(text: str, network: Network) -> dict[str, Any]:
    """A rule on this network: its name, its mixing matrix, and why it cannot be applied, if so."""
    choice = read_choice("aggregator", text)
    impossible = None
    try:
        choice.make().check(network)
    except BezoarError as error:
        impossible = str(error)
    mixing = choice.options.get("mixing")
    return {"aggregator": choice.name, "mixing": mixing, "impossible": impossible}


def _common_mixing(rules: Sequence[dict[str, Any]]) -> str:
    """The mixing matrix that the rules ask for; a page is about one matrix only."""
    asked = list(dict.fromkeys(rule["mixing"] for rule in rules if rule["mixing"]))
    if len(asked) > 1:
        raise BezoarError(
            f"aggregator: expected one mixing matrix for all rules, found {' and '.join(asked)}"
        )
    return asked[0] if asked else "metropolis"
