"""What the theory says of a network, as rows of a report's tables."""

from typing import Any

from bezoar._numbers import number
from bezoar.report._html_networks import listed
from bezoar.report._style import look
from bezoar.theory import MATRIX_OF

Rows = list[list[str]]

#: The quantities of worst placements, as the paper writes them.
QUANTITIES = {"delta_max": "δ_max", "lambda uniform": "λ uniform", "lambda mixing": "λ mixing"}


def readable(value: float) -> str:
    """A number in few characters; zero where only rounding is left of it."""
    return "∞" if value == float("inf") else number(value if abs(value) > 1e-12 else 0.0)


def theorem_rows(found: dict[str, Any]) -> Rows:
    """For the rules of either virtual mixing matrix and for the mean: which theorem holds."""
    rows = []
    for kind, connected in found["connectivity"].items():
        rules = ", ".join(look(rule).label for rule, matrix in MATRIX_OF.items() if matrix == kind)
        if connected["lambda_below_one"]:
            verdict = f"Theorem 1 where ρ\u00a0<\u00a0{connected['room_for_rho']:.3g}"
        elif connected["components"] > 1:
            verdict = f"none: the regular agents are in {connected['components']} pieces"
        else:
            verdict = "none: λ ≥ 1"
        numbers = [readable(connected[name]) for name in ("lambda", "beta")]
        rows.append([rules, verdict, f"λ {kind}", *numbers])
    mean = found["weighted_mean"]
    least = mean["iterations_over_smoothness_squared"]
    verdict = "none: λ' ≥ 1"
    if mean["lambda_prime_below_one"]:
        verdict = f"Theorem 2 where K\u00a0≥\u00a0{least:.3g}\u00a0L²"
    label = look("weighted_mean").label
    rows.append([label, verdict, "λ'", readable(mean["lambda_prime"]), "–"])
    return rows


def order_rows(found: dict[str, Any]) -> Rows:
    """Table I."""
    return [
        [
            look(row["aggregator"]).label,
            row["order"],
            readable(row["value"]),
            readable(row["room"]) if row["room"] else "none",
        ]
        for row in found["table_1"]
    ]


def error_rows(found: dict[str, Any]) -> Rows:
    """Table II."""
    names = {"RAgg": "best majority-dominant"}
    return [
        [
            names.get(row["aggregator"], row["aggregator"]),
            row["order"],
            f"{readable(row['value'])} ξ²",
        ]
        for row in found["table_2"]
    ]


def worst_rows(found: dict[str, Any]) -> Rows:
    """Where as many poisoned agents would do most harm."""
    return [
        [
            QUANTITIES[row["quantity"]],
            readable(row["now"]),
            readable(row["value"]),
            "exact" if row["exact"] else readable(row["bound"]),
            listed(row["poisoned"]),
        ]
        for row in found["worst_placement"]
    ]
