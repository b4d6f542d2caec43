"""What is written beside the paper's figures: captions, and texts for those who cannot see them."""

from bezoar import networks
from bezoar.paper._criteria import Curves
from bezoar.paper._settings import (
    DRAWN,
    NETWORK_TITLES,
    PARTITION_TITLES,
    SETTINGS,
    Place,
    Setting,
)
from bezoar.report import BASELINE, look

HEADINGS = {
    "fig1": "Figure 1: a motivating example",
    "fig2": "Figure 2: MNIST on the two-castle network",
    "fig4": "Figure 4: heterogeneity and disturbance on the two-castle network",
    "fig5": "Figure 5: MNIST on the line network",
    "fig7": "Figure 7: MNIST on the fan network",
}

#: The rule whose run stands for all in Figure 4; the paper does not say which it took.
SHOWN = "weighted_mean"


#: What each figure shows, with words to say where its curves end.
METRICS = {
    name: {"accuracy": "accuracies end", "consensus_error": "consensus errors end"}
    for name in SETTINGS
} | {"fig4": {"heterogeneity": "ξ ends", "disturbance": "A ends"}}

#: What its curves are.
_SHOWN = (
    "Accuracy is that of the regular agents' average model x̄ on the test images; the consensus "
    "error is the largest ‖x_w − x̄‖² of a regular agent."
)
_SHOWN_IN_4 = (
    "Lines: the heterogeneity ξ, the largest ‖∇f_w(x̄) − ∇f(x̄)‖ of a regular agent, and the "
    "disturbance A, the same of the poisoned agent, both at the regular agents' average model x̄ "
    f"of the {look(SHOWN).label} run (the paper does not say of which). Shading is over the runs "
    "of all eight rules. The runs are those of Figure 2."
)

#: How its plots are laid out.
_DRAWING = "A drawing of the network with the poisoned agent marked, then"
_LAYOUTS = dict.fromkeys(
    SETTINGS,
    f"{_DRAWING} a column for each partition with test accuracy above and consensus error "
    "below, a curve for each rule.",
) | {
    "fig1": "A row for each network: its drawing with the poisoned agent marked, test accuracy and "
    "consensus error over iterations, a curve for each rule.",
    "fig4": f"{_DRAWING} for each partition the heterogeneity ξ and the disturbance A over "
    "iterations.",
}


def shortened_note(name: str, setting: Setting) -> str:
    """A note for a figure that was not trained as long as in the paper."""
    full = SETTINGS[name].iterations
    if setting.iterations == full:
        return ""
    note = f"{setting.iterations:,} iterations instead of {full:,}"
    return f"{note}: an impression, not the figure" if setting.iterations < full else note


def caption(name: str, setting: Setting, curves: Curves) -> str:
    """What a figure shows and how it was made, in a few sentences."""
    sentences = [
        f"Softmax regression on MNIST, {setting.iterations:,} iterations with steps 0.1/√k; one of "
        "ten agents has flipped labels.",
        _SHOWN_IN_4 if name == "fig4" else _SHOWN,
        _seeds(setting, curves),
    ]
    if not all(networks.create(network).regular_is_connected for network in setting.networks):
        sentences.append(_single_agents(setting, curves))
    if note := shortened_note(name, setting):
        sentences.append(f"{note}.")
    return " ".join(sentences)


def _seeds(setting: Setting, curves: Curves) -> str:
    fixed = [PARTITION_TITLES[part] for part in setting.partitions if part not in DRAWN]
    if len(fixed) == len(setting.partitions):
        return "Nothing here is random: every seed gives these curves."
    count = max(len(curve.runs) for curve in curves.values())
    text = "The partitions are those of seed 0."
    if count > 1:
        text = f"Lines are means over {count} seeds, shaded from the smallest to the largest value."
    if fixed and count > 1:
        text += f" {fixed[0].capitalize()} nothing is random: one run stands for every seed."
    return text


def _single_agents(setting: Setting, curves: Curves) -> str:
    [network], partition = setting.networks, setting.partitions[-1]
    ends = _ends(setting, curves, network, partition, "accuracy_worst")
    return (
        "The regular agents are not connected among themselves, so their average model hides what "
        f"single agents have: {PARTITION_TITLES[partition]}, the worst agent's own model ends "
        f"{ends}. The data has the mean and the worst of the agents' own accuracies, too."
    )


def alternative(name: str, setting: Setting, curves: Curves) -> str:
    """A figure in words, with the numbers that its curves end at."""
    sentences = [_LAYOUTS[name]]
    for network in setting.networks:
        for partition in setting.partitions:
            panel = f"{NETWORK_TITLES[network]}, {PARTITION_TITLES[partition]}"
            parts = [
                f"{words} {_ends(setting, curves, network, partition, metric)}"
                for metric, words in METRICS[name].items()
            ]
            if name != "fig4":
                final = _final(curves, Place(network, partition, BASELINE), "accuracy")
                parts.append(f"the baseline's accuracy ends at {final:.3f}")
            sentences.append(f"{panel}: {', '.join(parts)}.")
    if note := shortened_note(name, setting):
        sentences.append(f"{note}.")
    return " ".join(sentences)


def _ends(setting: Setting, curves: Curves, network: str, partition: str, metric: str) -> str:
    """The lowest and the highest last value of a metric, with their rules."""
    ends = {
        look(rule).label: _final(curves, Place(network, partition, rule), metric)
        for rule in setting.rules
    }
    low, high = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
    form = ".3f" if metric.startswith("accuracy") else ".2g"
    return f"between {ends[low]:{form}} ({low}) and {ends[high]:{form}} ({high})"


def _final(curves: Curves, place: Place, metric: str) -> float:
    return float(curves[place].mean(metric)[-1])
