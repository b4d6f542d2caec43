"""How models are trained for the paper's figures: at which scale, and with whose settings.

A recipe is made of layers of fields of a spec: the paper's, then the authors', then the scale's.
Neither the paper nor its authors' code is followed where they are silent; see :data:`AUTHORS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bezoar.experiments import RunSpec
from bezoar.report import BASELINE

#: ``paper`` needs a GPU for neural networks; ``small`` takes about half an hour a figure on two
#: cores; ``quick`` takes a minute and only shows that everything works.
Scale = Literal["paper", "small", "quick"]

#: Whose settings: the paper's own, or those of its authors' public code.
Whose = Literal["paper", "authors"]

Fields = Mapping[str, Any]

DATASET_TITLES = {"mnist": "MNIST", "cifar100": "CIFAR-100", "tiny_imagenet": "Tiny-ImageNet"}
MODEL_TITLES = {
    "softmax": "softmax regression",
    "resnet18": "ResNet18",
    "resnet34": "ResNet34",
    "cnn": "CNN",
}

#: The paper's partitions: i.i.d., mildly and highly non-i.i.d.
PARTITIONS = {"iid": "iid", "mild": "dirichlet:alpha=1", "by_class": "by_class"}

#: How many classes each dataset has.
CLASSES = {"mnist": 10, "cifar100": 100, "tiny_imagenet": 200}

#: The step size in the authors' code. It counts iterations from 0 and takes 0.03/√(k+1), which is
#: our 0.03/√k.
AUTHORS_STEP = 0.03

#: The clipping thresholds in the authors' code; the paper gives none. What an agent moves in a step
#: scales with the step, so at other step sizes the thresholds are scaled like these.
THRESHOLDS = {
    "mnist": {"centered_clipping": 0.03, "clipped_gossip": 0.03},
    "cifar100": {"centered_clipping": 100.0, "clipped_gossip": 0.1},
    "tiny_imagenet": {"centered_clipping": 100.0, "clipped_gossip": 0.1},
}

#: What is measured of networks; testing every agent's model takes longer than training.
NETWORK_METRICS = (
    *("accuracy", "test_loss", "consensus_error"),
    *("heterogeneity", "disturbance", "poison_share"),
)


def _steps(scale: float, name: str = "inverse_sqrt") -> dict[str, Any]:
    return {"name": name, "scale": scale}


_NETWORK = {"batch": 32, "iterations": 1000, "every": 50}
_AGENTS = {"metrics": (*NETWORK_METRICS, "accuracy_mean", "accuracy_worst")}

#: The paper's fields by dataset. It does not say how long it trains, nor where networks start.
PAPER: dict[str, Fields] = {
    "mnist": {"schedule": _steps(0.1), "iterations": 1000, "every": 20},
    "cifar100": _NETWORK | _AGENTS | {"model": {"name": "resnet18"}, "schedule": _steps(0.03)},
    "tiny_imagenet": _NETWORK
    | _AGENTS
    | {"model": {"name": "resnet34"}, "schedule": _steps(0.03, "constant")},
}

_PRETRAINED = {"start": {"name": "pretrained", "augment": True}}

#: The fields of the authors' code. What it does beyond that is not followed: its baseline leaves
#: the poisoned agent out, its networks share the statistics of batch norm, its Dirichlet
#: proportions have a fixed seed, and it computes softmax regression in float64.
AUTHORS: dict[str, Fields] = {
    "mnist": {
        "schedule": _steps(AUTHORS_STEP),
        "weight_decay": 0.01,
        "batch": 5000,
        "order": "consecutive",
        "start": {"name": "random"},
        "iterations": 10_000,
        "every": 200,
        "metrics": None,
    },
    "cifar100": _PRETRAINED | {"weight_decay": 0.0085},
    "tiny_imagenet": _PRETRAINED | {"weight_decay": 0.0085},
}

#: The options of rules in the authors' code, beside thresholds.
_KEEP_OWN = {"keep_own": True}
AUTHORS_OPTIONS: dict[str, Fields] = {
    "trimmed_mean": _KEEP_OWN,
    "faba": _KEEP_OWN,
    "ios": _KEEP_OWN,
    "centered_clipping": {"memory": True},
}

#: What the authors' code measures where the paper says accuracy and consensus error.
AUTHORS_METRICS = {"accuracy": "accuracy_all", "consensus_error": "variance_norm"}


def _narrow(name: str, width: int, **more: Any) -> dict[str, Any]:
    return {"model": {"name": name, "width": width}, **more}


_SMALL = _PRETRAINED | {"metrics": NETWORK_METRICS, "gradient_samples": 64}
_QUICK = {"metrics": NETWORK_METRICS, "gradient_samples": 4, "start": {"name": "random"}}
_QUICK |= {"batch": 4, "iterations": 2, "every": 2}

#: What a scale changes, by dataset. With the paper's steps a network would have learned next to
#: nothing after so few iterations, so the small scale has larger ones. Torch 2.13 crashes on images
#: of 64 × 64 pixels if the first stage of a ResNet has 8 channels or fewer; 12 are safe.
SCALES: dict[Scale, dict[str, Fields]] = {
    "paper": {},
    "small": {
        "cifar100": _SMALL
        | _narrow("resnet18", 16, schedule=_steps(0.5), iterations=100, every=20),
        "tiny_imagenet": _SMALL
        | _narrow("resnet34", 12, schedule=_steps(0.5), iterations=30, every=10, batch=16),
    },
    "quick": {
        "mnist": {"iterations": 40, "every": 4},
        "cifar100": _QUICK | _narrow("resnet18", 4),
        "tiny_imagenet": _QUICK | {"model": {"name": "cnn", "width": 8, "hidden": 32}},
    },
}


@dataclass(frozen=True)
class Variant:
    """How figures are reproduced.

    Attributes:
        scale: how large models, data and trainings are.
        setting: whose settings.
        iterations: how long to train, if not as long as the scale and the setting say.
        device: the torch device that computes.
        clipping: one threshold for CC and CG in the place of :data:`THRESHOLDS`.
    """

    scale: Scale = "paper"
    setting: Whose = "paper"
    iterations: int | None = None
    device: str = "cpu"
    clipping: float | None = None


@dataclass(frozen=True)
class Recipe:
    """How a model is trained on a dataset: the fields of the spec, and the options of rules.

    The scale of the figure's variant is ``paper`` if the dataset has no other. The whole figure has
    as many iterations as its ``length``.
    """

    dataset: str
    variant: Variant
    fields: Fields
    options: Mapping[str, Fields]
    length: int

    @property
    def iterations(self) -> int:
        """How many iterations are trained."""
        return int(self.fields["iterations"])

    @property
    def is_random(self) -> bool:
        """Whether the start or the batches are drawn by the seed."""
        return "model" in self.fields or "start" in self.fields

    @property
    def title(self) -> str:
        """The model and the dataset in words."""
        model = self.fields.get("model", {"name": "softmax"})
        width = f" of width {model['width']}" if "width" in model else ""
        return f"{MODEL_TITLES[model['name']]}{width} on {DATASET_TITLES[self.dataset]}"

    @property
    def steps(self) -> str:
        """The step sizes as a formula."""
        schedule = self.fields["schedule"]
        return f"{schedule['scale']:g}" + ("/√k" if schedule["name"] == "inverse_sqrt" else "")

    def metric(self, name: str) -> str:
        """The metric that stands for the paper's accuracy or consensus error."""
        return AUTHORS_METRICS.get(name, name) if self.variant.setting == "authors" else name

    def spec(self, network: str, partition: str, rule: str, seed: int) -> RunSpec:
        """One run; network and rule are as they are typed, or the rule is the baseline."""
        given = {"dataset": self.dataset, "network": network, "seed": seed, **self.fields}
        given |= {"partition": PARTITIONS[partition], "device": self.variant.device}
        if rule == BASELINE:
            return RunSpec.read(given | {"poisoned": ()})
        options = self.options.get(rule)
        return RunSpec.read(given | {"aggregator": {"name": rule, **options} if options else rule})


def recipe(dataset: str, variant: Variant, own: Fields | None = None) -> Recipe:
    """How a figure trains on a dataset; ``own`` are its length and measurements, if it has some.

    Longer trainings have as many measurements as the others, and measure the same for all figures,
    so that these share their runs.
    """
    authors = variant.setting == "authors"
    theirs = AUTHORS[dataset] if authors else {}
    scaled = SCALES[variant.scale].get(dataset, {})
    fields = {**PAPER[dataset], **(own or {}), **theirs}
    # What is quick is too short on purpose.
    length = (fields if variant.scale == "quick" else {**fields, **scaled})["iterations"]
    fields |= scaled
    if variant.iterations is not None and variant.iterations > length:
        fields = {**PAPER[dataset], **theirs, **scaled}
        fields["every"] = fields["every"] * variant.iterations // fields["iterations"]
    fields["iterations"] = variant.iterations or fields["iterations"]
    if authors and fields.get("metrics") is not None:
        fields["metrics"] = (*fields["metrics"], *AUTHORS_METRICS.values())
    options = {name: dict(given) for name, given in AUTHORS_OPTIONS.items() if authors}
    for rule, threshold in THRESHOLDS[dataset].items():
        scaled_threshold = threshold * fields["schedule"]["scale"] / AUTHORS_STEP
        used = variant.clipping or float(f"{scaled_threshold:.3g}")
        options[rule] = {**options.get(rule, {}), "threshold": used}
    return Recipe(dataset, variant, fields, options, length)
