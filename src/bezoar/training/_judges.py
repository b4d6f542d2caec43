"""Whose scores decide about labels that attacks choose anew in every iteration."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.attacks import Attack
from bezoar.training._run import Run

#: From models ``[runs, agents, classes, width]`` to every agent's gradient there, with its true
#: labels, of the same shape.
CleanGradients = Callable[[Tensor], Tensor]


def regular_average(runs: Sequence[Run], members: Sequence[int], models: Tensor) -> Tensor:
    """``[runs, …]`` the mean over the regular agents of ``models [runs, agents, …]``."""
    averages = []
    for run, values in zip(runs, models, strict=True):
        poisoned = run.network.poisoned_mask
        regular = [place for place, member in enumerate(members) if not poisoned[member]]
        averages.append(values[regular].mean(0))
    return torch.stack(averages)


def check_model_judges(attack: Attack) -> None:
    """Refuse an attack whose labels follow from gradients, for models other than softmax."""
    if attack.judge_of_labels.endswith("gradient"):
        raise BezoarError(
            f"attack {attack.name}: it takes full gradients with true labels in every iteration, "
            "which are computed for softmax regression alone; allowed: the model softmax, or "
            "another attack"
        )


def averages_that_judge(
    runs: Sequence[Run], members: Sequence[int], models: Tensor
) -> dict[int, Tensor]:
    """``[…]`` the regular agents' average model, for each run in which it decides about labels."""
    some = [n for n, run in enumerate(runs) if run.attack.judge_of_labels == "average_model"]
    if not some:
        return {}
    averages = regular_average([runs[number] for number in some], members, models[some])
    return dict(zip(some, averages, strict=True))


def judges(
    runs: Sequence[Run],
    members: Sequence[int],
    models: Tensor,
    clean_gradients: CleanGradients,
    iteration: int,
) -> dict[Attack, Tensor]:
    """``[runs, agents, classes, width]`` what gives the scores that attacks choose labels by.

    Of softmax regression a gradient scores a sample as a model does: what a step along ``G`` adds
    to the scores of a sample ``a`` is ``G a``. Attacks that choose no labels in this iteration, or
    choose them by the agent's own model, are left out. What is of other runs is zero.

    Args:
        runs, members: as for :class:`~bezoar.training.Task`.
        models: ``[runs, agents, classes, width]`` every agent's own model.
        clean_gradients: gives gradients with true labels, for any number of runs.
        iteration: which iteration it is, counted from 1.
    """
    asked: dict[Attack, list[int]] = {}
    for number, run in enumerate(runs):
        attack = run.attack
        if attack.dynamic and attack.judge_of_labels != "own_model" and attack.active(iteration):
            asked.setdefault(attack, []).append(number)
    found = {}
    for attack, numbers in asked.items():
        some, own = [runs[number] for number in numbers], models[numbers]
        if attack.judge_of_labels == "own_gradient":
            judge = clean_gradients(own)
        else:
            judge = regular_average(some, members, own).unsqueeze(1)
            if attack.judge_of_labels == "regular_gradient":
                at_average = clean_gradients(judge.expand_as(own))
                judge = regular_average(some, members, at_average).unsqueeze(1)
        found[attack] = torch.zeros_like(models)
        found[attack][numbers] = judge
    return found
