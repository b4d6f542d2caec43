"""A rule applied at one agent, to the messages that it received."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from bezoar._arrays import Floats
from bezoar._errors import BezoarError
from bezoar.aggregators import Aggregator, OutputLayer
from bezoar.exchange._coordinates import CoordinateExchange
from bezoar.exchange._exchange import auxiliary_of, one_by_one
from bezoar.exchange._neighbourhoods import Neighbourhoods
from bezoar.exchange._sent import Sent, as_vectors
from bezoar.exchange._tuning import DEFAULT


def aggregate_at(
    rule: Aggregator,
    inputs: ArrayLike | Tensor,
    mixing: ArrayLike | Tensor | None,
    estimate: int | None,
    senders: Sequence[int] | None,
    remembered: Mapping[str, ArrayLike | Tensor],
    iteration: int = 0,
    progress: float = 0.0,
    layer: OutputLayer | None = None,
    losses: ArrayLike | Tensor | None = None,
) -> Tensor:
    """Do what :meth:`bezoar.aggregators.Aggregator.at` says, by the code for sparse networks.

    ``layer`` says where the output layer lies in a message, if the model knows it; without it, the
    rule's own ``head`` does.
    """
    inputs = as_vectors("inputs", inputs)
    if inputs.ndim != 2 or len(inputs) == 0:
        raise BezoarError(f"inputs: expected shape [m, D], found {list(inputs.shape)}")
    count, length = inputs.shape
    taken_for_poisoned = _estimate(rule, estimate, count)
    if rule.sums_updates():
        raise BezoarError(
            f"aggregator {rule.name}: it goes by what each neighbour changed in all iterations, of "
            "which one exchange tells nothing; it works in training"
        )
    rank, table = _by_sender(senders, inputs)
    here = Neighbourhoods(
        index=rank.view(1, 1, count),
        mask=torch.ones(1, 1, count, dtype=torch.bool),
        mixing=_mixing(rule, mixing, count).view(1, 1, count),
        estimate=torch.tensor([[taken_for_poisoned]]),
        first_link=torch.zeros(1, 1, dtype=torch.int64),
        largest_estimate=taken_for_poisoned,
    ).to(inputs.device)
    known = {
        name: _remembered(rule, name, remembered, length).expand(1, count, length)
        for name in rule.remembers()
        if name != "origin"
    }
    judged = _losses(rule, losses, count).to(inputs.device)
    sent = Sent(table[None], None, known, iteration, progress, lambda *_: judged)
    models = torch.empty_like(sent.messages)
    with torch.inference_mode():
        if (inner := auxiliary_of(rule)) is not None:
            _estimate(inner, taken_for_poisoned, count)
            found: list[Tensor] = []
            measuring = CoordinateExchange([0], inner, count, [here], DEFAULT, dense=False)
            measuring.measure(sent, lambda *told: found.append(told[-1]), map)
            sent = replace(sent, distances=torch.stack(found).sum(0)[0])
        one_by_one([0], rule, count, [here], layer, DEFAULT)(sent, models, None, map)
    return models[0, int(rank[0])].clone()


def _by_sender(senders: Sequence[int] | None, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """``[m]`` the rank of each input's sender, and ``[m, D]`` the inputs by that rank."""
    if senders is None:
        return torch.arange(len(inputs)), inputs.contiguous()
    try:
        agents = [index(agent) for agent in senders]
    except TypeError:
        agents = []
    if len(agents) != len(inputs) or len(set(agents)) != len(inputs):
        raise BezoarError(f"senders: expected {len(inputs)} different agents, found {senders}")
    order = torch.tensor(sorted(range(len(agents)), key=agents.__getitem__))
    return order.argsort(), inputs[order.to(inputs.device)].contiguous()


def _mixing(rule: Aggregator, found: ArrayLike | Tensor | None, inputs: int) -> Tensor:
    if found is None:
        if hasattr(rule, "mixing"):
            raise BezoarError(
                f"mixing: {rule.name} needs the agent's row of the mixing matrix, one weight an "
                "input; found nothing"
            )
        return torch.full((inputs,), 1 / inputs, dtype=torch.float64)
    weights = _numbers("mixing", found)
    if weights.shape != (inputs,) or not (weights >= 0).all() or not 0.999 < weights.sum() < 1.001:
        raise BezoarError(
            f"mixing: expected {inputs} weights that sum to 1, one an input, found {weights}"
        )
    return torch.from_numpy(weights)


def _losses(rule: Aggregator, found: ArrayLike | Tensor | None, inputs: int) -> Tensor:
    """``[m]`` the losses; zeros where nobody asks."""
    if not rule.samples_judged():
        return torch.zeros(inputs, dtype=torch.float64)
    losses = None if found is None else _numbers("losses", found)
    if losses is None or losses.shape != (inputs,):
        shape = "nothing" if losses is None else f"shape {list(losses.shape)}"
        raise BezoarError(
            f"losses: {rule.name} needs the loss of each of {inputs} inputs on samples of the "
            f"agent's own, found {shape}"
        )
    return torch.from_numpy(losses)


def _numbers(name: str, found: ArrayLike | Tensor) -> Floats:
    """What was given for an argument, as an array of float64."""
    try:
        values = found.detach().cpu() if isinstance(found, Tensor) else found
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BezoarError(f"{name}: expected one number an input, found {found!r}") from None


def _estimate(rule: Aggregator, found: int | None, inputs: int) -> int:
    if found is None:
        if rule.uses_estimate() and rule.wiring()[1] in ("exact", "max"):
            raise BezoarError(
                f"estimate: {rule.name} needs the number of inputs to be taken for poisoned; "
                "found nothing"
            )
        found = int(rule.assumed(np.array(inputs))) if rule.uses_estimate() else 0
    is_count = isinstance(found, int | np.integer) and not isinstance(found, bool) and found >= 0
    if not is_count:
        raise BezoarError(f"estimate: expected a number from 0, found {found!r}")
    found = int(found)
    if inputs < rule.inputs_needed(found):
        raise BezoarError(
            f"aggregator {rule.name}: impossible with {inputs} inputs of which {found} are taken "
            f"for poisoned: the rule {rule.keeps}"
        )
    return min(found, inputs)


def _remembered(
    rule: Aggregator, name: str, given: Mapping[str, ArrayLike | Tensor], length: int
) -> Tensor:
    found = as_vectors(name, given[name]) if name in given else None
    if found is None or found.shape != (length,):
        shape = "nothing" if found is None else f"shape {list(found.shape)}"
        raise BezoarError(
            f"remembered: {rule.name} needs {name!r} of length {length}, found {shape}"
        )
    return found
