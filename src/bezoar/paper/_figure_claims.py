"""What the paper claims of its MNIST figures, as data.

Where it says "near", "among the best" or "severe", a number has to be chosen to judge it by. The
numbers are here, the same for all claims, and each claim's text states its own.
"""

from bezoar.paper._claims import Claim
from bezoar.paper._criteria import Ahead, Alike, Between, Drops, Rises, Settles
from bezoar.paper._settings import MOTIVATING_RULES, PARTITION_TITLES, PARTITIONS, RULES
from bezoar.report import BASELINE, look

#: "Near", "comparable", "among the best": at most so much accuracy behind.
NEAR = 0.03

#: "Degrades significantly": more accuracy lost than this, five times what a run can tell.
SIGNIFICANT = 0.05

#: "Collapses", "severe drop": more accuracy lost than this; "stays robust": not so much.
SEVERE = 0.2

#: "Of the order of 1e-5": between these.
ORDER = 1e-6, 1e-4

#: "In the same order": within this factor, about half an order of magnitude either way.
SAME = 3.0

#: "Bounded": no more growth than this from the first half of training to the second.
STEADY = 1.25

MEAN = ("weighted_mean",)


def _without(rules: tuple[str, ...], *left_out: str) -> tuple[str, ...]:
    return tuple(rule for rule in rules if rule not in left_out)


def _near_baseline(figure: str, network: str) -> Claim:
    return Claim(
        figure,
        f"I.i.d., every rule ends near the baseline: at most {NEAR} below.",
        Ahead(network, "iid", RULES, (BASELINE,), by=-NEAR),
    )


def _best(figure: str, network: str) -> Claim:
    return Claim(
        figure,
        "By class, the weighted mean ends best of all rules.",
        Ahead(network, "by_class", MEAN, _without(RULES, *MEAN)),
    )


FIGURE_1 = (
    *(
        Claim(
            "fig1",
            f"The weighted mean stays robust on the {name} network: at most {SEVERE} below the "
            "baseline.",
            Ahead(network, "by_class", MEAN, (BASELINE,), by=-SEVERE),
        )
        for network, name in (("two_castle", "two-castle"), ("fan", "fan"))
    ),
    Claim(
        "fig1",
        f"From the two-castle to the fan network every robust rule degrades significantly: by more "
        f"than {SIGNIFICANT}.",
        Drops(
            ("two_castle", "by_class"),
            ("fan", "by_class"),
            _without(MOTIVATING_RULES, *MEAN),
            by=SIGNIFICANT,
        ),
    ),
    Claim(
        "fig1",
        "On the fan network every robust rule falls behind the weighted mean.",
        Ahead("fan", "by_class", MEAN, _without(MOTIVATING_RULES, *MEAN)),
    ),
)

FIGURE_2 = (
    _near_baseline("fig2", "two_castle"),
    Claim(
        "fig2",
        "Mild, FABA and IOS end highest of all rules.",
        Ahead("two_castle", "mild", ("faba", "ios"), _without(RULES, "faba", "ios")),
    ),
    Claim(
        "fig2",
        "By class, most rules degrade: at least five of the eight end below their i.i.d. accuracy.",
        Drops(("two_castle", "iid"), ("two_castle", "by_class"), RULES, least=5),
    ),
    Claim(
        "fig2",
        f"By class, the weighted mean ends among the best: at most {NEAR} below any other rule.",
        Ahead("two_castle", "by_class", MEAN, _without(RULES, *MEAN), by=-NEAR),
    ),
    *(
        Claim(
            "fig2",
            f"{PARTITION_TITLES[partition].capitalize()}, every rule's consensus error ends in the "
            f"order of 1e-5: between {ORDER[0]:.0e} and {ORDER[1]:.0e}.",
            Between("two_castle", partition, RULES, "consensus_error", *ORDER),
        )
        for partition in PARTITIONS
    ),
)

FIGURE_4 = (
    *(
        Claim(
            "fig4",
            f"The {name} is bounded: under every rule and partition its largest value in the "
            f"second half of training is at most {STEADY} times that in the first.",
            Settles("two_castle", tuple(PARTITIONS), RULES, metric, STEADY),
        )
        for metric, name in (("heterogeneity", "heterogeneity ξ"), ("disturbance", "disturbance A"))
    ),
    Claim(
        "fig4",
        "The heterogeneity ξ increases from i.i.d. to mild to by class, under every rule and at "
        "every measurement.",
        Rises("two_castle", tuple(PARTITIONS), RULES, "heterogeneity"),
    ),
    Claim(
        "fig4",
        f"By class, ξ is in the same order as A: within a factor of {SAME:g}, under every rule and "
        "at every measurement.",
        Alike("two_castle", "by_class", RULES, ("heterogeneity", "disturbance"), SAME),
    ),
)

FIGURE_5 = (
    _near_baseline("fig5", "line"),
    Claim(
        "fig5",
        "Mild, every rule ends below its i.i.d. accuracy.",
        Drops(("line", "iid"), ("line", "mild"), RULES),
    ),
    *(
        Claim(
            "fig5",
            f"By class, {look(rule).label} collapses: it ends more than {SEVERE} below the "
            "weighted mean.",
            Ahead("line", "by_class", MEAN, (rule,), by=SEVERE),
        )
        for rule in ("trimmed_mean", "faba", "ios", "rfa", "lfighter")
    ),
    _best("fig5", "line"),
)

FIGURE_7 = (
    Claim(
        "fig7",
        "I.i.d., robust rules have the advantage: IOS ends above the weighted mean.",
        Ahead("fan", "iid", ("ios",), MEAN),
    ),
    Claim(
        "fig7",
        "Mild, the robust rules begin to degrade: each ends below its i.i.d. accuracy.",
        Drops(("fan", "iid"), ("fan", "mild"), _without(RULES, *MEAN)),
    ),
    *(
        Claim(
            "fig7",
            f"By class, {look(rule).label} drops severely: it ends more than {SEVERE} below its "
            "i.i.d. accuracy.",
            Drops(("fan", "iid"), ("fan", "by_class"), (rule,), by=SEVERE),
        )
        for rule in ("trimmed_mean", "faba", "ios")
    ),
    _best("fig7", "fan"),
)

#: All claims, figure after figure.
CLAIMS = (*FIGURE_1, *FIGURE_2, *FIGURE_4, *FIGURE_5, *FIGURE_7)
