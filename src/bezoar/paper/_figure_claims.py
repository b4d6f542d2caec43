"""What the paper claims of its figures, as data.

Where it says "near", "among the best" or "severe", a number has to be chosen to judge it by. The
numbers are here, the same for all claims, and each claim's text states its own.
"""

from bezoar.paper._claims import Claim
from bezoar.paper._comparisons import (
    FIGURES,
    MOTIVATING_RULES,
    NETWORK_TITLES,
    PARTITION_TITLES,
    RULES,
)
from bezoar.paper._criteria import Ahead, Alike, Between, Criterion, Drops, Rises, Settles
from bezoar.paper._recipes import PARTITIONS
from bezoar.report import BASELINE, look

#: "Near", "comparable", "among the best": at most so much accuracy behind.
NEAR = 0.03

#: "Degrades significantly": more accuracy lost than this, five times what a run can tell.
SIGNIFICANT = 0.05

#: "Collapses", "severe drop": more accuracy lost than this; "stays robust": not so much.
SEVERE = 0.2

#: The same of networks, which are less accurate: a larger share of the accuracy lost than this.
SEVERE_SHARE = 0.25

#: "Of the order of 1e-5": between these.
ORDER = 1e-6, 1e-4

#: "In the same order": within this factor, about half an order of magnitude either way.
SAME = 3.0

#: "Bounded": no more growth than this from the first half of training to the second.
STEADY = 1.25

MEAN = ("weighted_mean",)


def _without(rules: tuple[str, ...], *left_out: str) -> tuple[str, ...]:
    return tuple(rule for rule in rules if rule not in left_out)


ROBUST, MOTIVATING = _without(RULES, *MEAN), _without(MOTIVATING_RULES, *MEAN)


def _near_baseline(network: str) -> tuple[str, Criterion]:
    text = f"I.i.d., every rule ends near the baseline: at most {NEAR} below."
    return text, Ahead(network, "iid", RULES, (BASELINE,), by=-NEAR)


def _best(network: str) -> tuple[str, Criterion]:
    text = "By class, the weighted mean ends best of all rules."
    return text, Ahead(network, "by_class", MEAN, ROBUST)


def _robust(network: str) -> tuple[str, Criterion]:
    name = NETWORK_TITLES[network].lower()
    text = f"The weighted mean stays robust on the {name} network: at most {SEVERE} below the"
    return f"{text} baseline.", Ahead(network, "by_class", MEAN, (BASELINE,), by=-SEVERE)


def _in_order(partition: str) -> tuple[str, Criterion]:
    text = (
        f"{PARTITION_TITLES[partition].capitalize()}, every rule's consensus error ends in the "
        f"order of 1e-5: between {ORDER[0]:.0e} and {ORDER[1]:.0e}."
    )
    return text, Between("two_castle", partition, RULES, "consensus_error", *ORDER)


def _bounded(metric: str, name: str) -> tuple[str, Criterion]:
    text = (
        f"The {name} is bounded: under every rule and partition its largest value in the second "
        f"half of training is at most {STEADY} times that in the first."
    )
    return text, Settles("two_castle", tuple(PARTITIONS), RULES, metric, STEADY)


def _much(by: float) -> str:
    return f"more than {by}" if by else "more than a quarter"


def _collapses(rule: str, by: float = SEVERE, share: float = 0.0) -> tuple[str, Criterion]:
    text = f"By class, {look(rule).label} collapses: it ends {_much(by)} below the weighted mean."
    return text, Ahead("line", "by_class", MEAN, (rule,), by=by, share=share)


def _drops(rule: str, by: float = SEVERE, share: float = 0.0) -> tuple[str, Criterion]:
    text = f"By class, {look(rule).label} drops severely: it ends {_much(by)} below its i.i.d."
    drops = Drops(("fan", "iid"), ("fan", "by_class"), (rule,), by=by, share=share)
    return f"{text} accuracy.", drops


def _worse(partition: str) -> tuple[str, Criterion]:
    text = f"{PARTITION_TITLES[partition].capitalize()}, the weighted mean ends below every robust"
    return f"{text} rule.", Ahead("two_castle", partition, ROBUST, MEAN)


def _ranked(figure: str) -> tuple[tuple[str, Criterion], ...]:
    """That the weighted mean is among the top three, and better than most, in every case."""
    cases = FIGURES[figure].networks.items()
    top = "the weighted mean ends among the top three of the eight rules."
    most = "the weighted mean ends above most robust rules: at least four of the seven."
    return tuple(
        (f"With {title}, {text}", Ahead(network, "by_class", MEAN, ROBUST, top=place))
        for text, place in ((top, 3), (most, 4))
        for network, title in cases
    )


_LINE = (
    _near_baseline("line"),
    (
        "Mild, every rule ends below its i.i.d. accuracy.",
        Drops(("line", "iid"), ("line", "mild"), RULES),
    ),
)
_FAN = (
    (
        "I.i.d., robust rules have the advantage: IOS ends above the weighted mean.",
        Ahead("fan", "iid", ("ios",), MEAN),
    ),
    (
        "Mild, the robust rules begin to degrade: each ends below its i.i.d. accuracy.",
        Drops(("fan", "iid"), ("fan", "mild"), ROBUST),
    ),
)
_COLLAPSING = ("trimmed_mean", "faba", "ios", "rfa", "lfighter")
_DROPPING = ("trimmed_mean", "faba", "ios")

#: What is said of both datasets.
_TWO_CASTLE = (
    _near_baseline("two_castle"),
    (
        "Mild, FABA and IOS end highest of all rules.",
        Ahead("two_castle", "mild", ("faba", "ios"), _without(RULES, "faba", "ios")),
    ),
    (
        "By class, most rules degrade: at least five of the eight end below their i.i.d. accuracy.",
        Drops(("two_castle", "iid"), ("two_castle", "by_class"), RULES, least=5),
    ),
    (
        f"By class, the weighted mean ends among the best: at most {NEAR} below any other rule.",
        Ahead("two_castle", "by_class", MEAN, ROBUST, by=-NEAR),
    ),
    *map(_in_order, PARTITIONS),
)
_GRADIENTS = (
    _bounded("heterogeneity", "heterogeneity ξ"),
    _bounded("disturbance", "disturbance A"),
    (
        "The heterogeneity ξ increases from i.i.d. to mild to by class, under every rule and at "
        "every measurement.",
        Rises("two_castle", tuple(PARTITIONS), RULES, "heterogeneity"),
    ),
    (
        f"By class, ξ is in the same order as A: within a factor of {SAME:g}, under every rule "
        "and at every measurement.",
        Alike("two_castle", "by_class", RULES, ("heterogeneity", "disturbance"), SAME),
    ),
)

_STATED: dict[str, tuple[tuple[str, Criterion], ...]] = {
    "fig1": (
        _robust("two_castle"),
        _robust("fan"),
        (
            "From the two-castle to the fan network every robust rule degrades significantly: by "
            f"more than {SIGNIFICANT}.",
            Drops(("two_castle", "by_class"), ("fan", "by_class"), MOTIVATING, by=SIGNIFICANT),
        ),
        (
            "On the fan network every robust rule falls behind the weighted mean.",
            Ahead("fan", "by_class", MEAN, MOTIVATING),
        ),
    ),
    "fig2": _TWO_CASTLE,
    "fig3": _TWO_CASTLE,
    "fig4": _GRADIENTS,
    "fig4-mnist": _GRADIENTS,
    "fig5": (*_LINE, *map(_collapses, _COLLAPSING), _best("line")),
    "fig6": (*_LINE, *(_collapses(rule, 0.0, SEVERE_SHARE) for rule in _COLLAPSING), _best("line")),
    "fig7": (*_FAN, *map(_drops, _DROPPING), _best("fan")),
    "fig8": (*_FAN, *(_drops(rule, 0.0, SEVERE_SHARE) for rule in _DROPPING), _best("fan")),
    "fig11": (
        _worse("iid"),
        _worse("mild"),
        (
            "By class, the weighted mean ends among the top two of the eight rules.",
            Ahead("two_castle", "by_class", MEAN, ROBUST, top=2),
        ),
        (
            "By class, RFA ends above the weighted mean.",
            Ahead("two_castle", "by_class", ("rfa",), MEAN),
        ),
        (
            f"By class, the weighted mean is only slightly worse than RFA: at most {NEAR} below.",
            Ahead("two_castle", "by_class", MEAN, ("rfa",), by=-NEAR),
        ),
    ),
    "fig12": _ranked("fig12"),
    "fig13": _ranked("fig13"),
}

#: All claims, figure after figure.
CLAIMS = tuple(Claim(figure, *stated) for figure, several in _STATED.items() for stated in several)
