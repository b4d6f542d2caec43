"""What is written beside the paper's figures: captions, and texts for those who cannot see them."""

from itertools import product

from bezoar._numbers import joined
from bezoar.experiments import network_of
from bezoar.paper._comparisons import PARTITION_TITLES
from bezoar.paper._recipes import Recipe
from bezoar.paper._trained import TrainedComparison, TrainedFigure, shown_variant
from bezoar.report import BASELINE, look

#: The rule whose run stands for all in Figure 4; the paper does not say which it took.
SHOWN = "weighted_mean"

#: How a sentence says where the curves of a metric end.
_ENDINGS = {
    "accuracy": "accuracies end",
    "consensus_error": "consensus errors end",
    "heterogeneity": "ξ ends",
    "disturbance": "A ends",
}

#: What curves are, by the first metric of a figure.
_SHOWN = {
    "accuracy": "Accuracy is that of the regular agents' average model x̄ on the test images; the "
    "consensus error is the largest ‖x_w − x̄‖² of a regular agent.",
    "accuracy_all": "Accuracy is that of the average of all agents' models, poisoned ones "
    "included, on the test images; the consensus error is the norm of the coordinate-wise "
    "variance of the regular agents' models. Baseline, batch norm, Dirichlet proportions and "
    "float32 are ours.",
    "heterogeneity": "Lines: the heterogeneity ξ, the largest ‖∇f_w(x̄) − ∇f(x̄)‖ of a regular "
    "agent, and the disturbance A, the same of the poisoned agent, both at the regular agents' "
    f"average model x̄ of the {look(SHOWN).label} run (the paper does not say of which). Shading "
    "is over the runs of all eight rules.",
}

_DRAWING = "A drawing of the network with the poisoned agent marked, then"
_LAYOUTS = {
    "partitions": f"{_DRAWING} a column for each partition with test accuracy above and consensus "
    "error below, a curve for each rule.",
    "networks": "A row for each network: its drawing with the poisoned agents marked, test "
    "accuracy and consensus error over iterations, a curve for each rule.",
    "gradients": f"{_DRAWING} for each partition the heterogeneity ξ and the disturbance A over "
    "iterations.",
}

_STARTS = {"random": "a random start", "pretrained": "a pretrained start with a new output layer"}


def about(recipe: Recipe) -> str:
    """How models are trained, as the beginning of a sentence."""
    given, title = recipe.fields, recipe.title
    parts = [
        title[0].upper() + title[1:],
        f"{recipe.iterations:,} iterations with steps {recipe.steps}",
    ]
    if "batch" in given:
        consecutive = " consecutive samples" if given.get("order") == "consecutive" else ""
        parts.append(f"batches of {given['batch']:,}{consecutive}")
    if "weight_decay" in given:
        parts.append(f"weight decay {given['weight_decay']}")
    if recipe.is_random:
        parts.append(_STARTS[given.get("start", {"name": "random"})["name"]])
    return ", ".join(parts)


def note(part: TrainedComparison) -> str:
    """A sentence that says how a comparison differs from the paper's; empty if it does not."""
    recipe, variant = part.recipe, part.recipe.variant
    iterations = f"{recipe.iterations:,} iterations instead of {recipe.length:,}"
    if part.too_short:
        iterations += ": an impression, not the figure"
    notes = {
        iterations: recipe.iterations != recipe.length,
        f"{variant.scale} scale, not the paper's: {recipe.title}, {recipe.length:,} iterations "
        f"with steps {recipe.steps}": variant.scale == "small",
        f"quick scale: {recipe.title}": variant.scale == "quick",
        "the authors' settings": variant.setting == "authors",
        part.dataset.note: True,
    }
    told = "; ".join(text for text, is_so in notes.items() if is_so and text)
    return told[:1].upper() + told[1:]


def title(made: TrainedFigure) -> str:
    """A figure's title with its variant."""
    words = {"scale": "{} scale", "setting": "the {}' settings"}
    shown = shown_variant(made.figure, made.variant)
    told = ", ".join(words[name].format(value) for name, value in shown.items())
    return made.figure.title + (f" ({told})" if told else "")


def caption(made: TrainedFigure) -> str:
    """What a figure shows and how it was made, in a few sentences."""
    shown = _SHOWN[made.parts[0].recipe.metric(made.figure.metrics[0])]
    sentences = [f"{'; '.join(about(p.recipe) for p in made.parts)}; {made.figure.poison}.", shown]
    for part in made.parts:
        sentences.append(made.about(part) + _seeds(part))
        if made.figure.layout == "partitions":
            sentences.append(_single_agents(part))
        if made.figure.layout == "gradients":
            sentences.append(made.about(part) + _gradients(part))
        if "model" in part.recipe.fields:
            sentences.append(made.about(part) + _losses(part))
        if text := note(part):
            sentences.append(f"{made.about(part)}{text}.")
    return " ".join(filter(None, sentences))


def _seeds(part: TrainedComparison) -> str:
    of, networks = part.comparison, part.comparison.figure.networks
    places = list(product(networks, of.figure.partitions))
    fixed = [place for place in places if not of.is_random(*place)]
    if fixed == places:
        return "Nothing here is random: every seed gives these curves."
    drawn = "The start, the batches and the" if of.recipe.is_random else "The"
    text = f"{drawn} partitions are those of seed 0."
    if part.seeds > 1:
        text = f"Lines are means over {part.seeds} seeds, shaded from the smallest to the largest"
        text += " value."
        if fixed:
            where = joined(PARTITION_TITLES[partition].capitalize() for _, partition in fixed)
            if len(networks) > 1:
                where = f"With {joined(networks[network] for network, _ in fixed)}"
            text += f" {where} nothing is random: one run stands for every seed."
    return text


def _gradients(part: TrainedComparison) -> str:
    """On how many samples ξ and A are measured."""
    count = part.specs[0][1].gradient_samples
    return (
        f"Gradients are measured on {f'{count} samples' if count else 'all samples'} of an agent."
    )


def _losses(part: TrainedComparison) -> str:
    """How far networks were trained: where the test loss of the baseline began and ended."""
    figure, found = part.comparison.figure, []
    for network, partition in product(figure.networks, figure.partitions):
        losses = part.curves.values(network, partition, BASELINE, "test_loss").mean(0)
        where = figure.where(network, partition)
        found.append(f"from {losses[0]:.2f} to {losses[-1]:.2f} ({where})")
    return f"The baseline's test loss goes {', '.join(found)}."


def _single_agents(part: TrainedComparison) -> str:
    """What the average model hides where the regular agents are not connected."""
    place, spec = part.specs[0]
    measured = all("accuracy_worst" in run.metrics for run in part.runs)
    if network_of(spec).regular_is_connected:
        return ""
    text = (
        "The regular agents are not connected among themselves, so their average model hides what "
        "single agents have"
    )
    if not measured:
        return f"{text}, which was not measured."
    partition = part.comparison.figure.partitions[-1]
    ends = _ends(part, place.network, partition, "accuracy_worst")
    return (
        f"{text}: {PARTITION_TITLES[partition]}, the worst agent's own model ends {ends}. The data "
        "has the mean and the worst of the agents' own accuracies, too."
    )


def alternative(made: TrainedFigure, part: TrainedComparison) -> str:
    """A picture in words, with the numbers that its curves end at."""
    figure = part.comparison.figure
    sentences = [f"{made.about(part)}{_LAYOUTS[figure.layout]}"]
    for place in product(figure.networks, figure.partitions):
        parts = [f"{_ENDINGS[metric]} {_ends(part, *place, metric)}" for metric in figure.metrics]
        if figure.layout != "gradients":
            final = part.curves.finals(*place, BASELINE).mean()
            parts.append(f"the baseline's accuracy ends at {final:.3f}")
        sentences.append(f"{figure.panel_title(*place)}: {', '.join(parts)}.")
    if text := note(part):
        sentences.append(f"{text}.")
    return " ".join(sentences)


def _ends(part: TrainedComparison, network: str, partition: str, metric: str) -> str:
    """The lowest and the highest last value of a metric, with their rules."""
    ends = {
        look(rule).label: float(part.curves.finals(network, partition, rule, metric).mean())
        for rule in part.comparison.figure.rules
    }
    low, high = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
    form = ".3f" if metric.startswith("accuracy") else ".2g"
    return f"between {ends[low]:{form}} ({low}) and {ends[high]:{form}} ({high})"
