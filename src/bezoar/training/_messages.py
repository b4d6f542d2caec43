"""What poisoned agents send instead of the protocol's messages."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.attacks import Attack, SeenMessages
from bezoar.exchange import FalseMessages
from bezoar.networks import Network
from bezoar.training._run import Run


def false_messages(
    runs: Sequence[Run],
    messages: Tensor,
    models: Tensor,
    iteration: int,
    members: Sequence[int] | None = None,
) -> FalseMessages | None:
    """The messages of all attacks that lie in an iteration; ``None`` if none does.

    Args:
        runs: the runs.
        messages: ``[runs, W, D]`` what the protocol asks every agent to send.
        models: ``[runs, W, D]`` every agent's model before the local update.
        iteration: which iteration it is, counted from 1.
        members: the one agent that is here, if the others are elsewhere: tensors are
            ``[runs, 1, D]``, and an attack knows what this agent holds.
    """
    groups: dict[tuple[Attack, Network], list[int]] = {}
    for number, run in enumerate(runs):
        here = run.network.poisoned if members is None else set(members) & {*run.network.poisoned}
        network = run.network.at(iteration)
        lies = run.attack.lies and run.attack.active(iteration)
        if lies and any(network.degrees[agent] for agent in here):
            groups.setdefault((run.attack, network), []).append(number)
    found = []
    for (attack, network), some in groups.items():
        seeds = [runs[number].seed for number in some]
        held = messages[some], models[some]
        found.append(_of_group(attack, network, some, seeds, *held, iteration, members))
        del held  # before the next group's are gathered
    return FalseMessages.together(found)


def count_sends(attack: Attack, network: Network) -> int:
    """How many false messages an attack sends in an iteration: one a link, or one an agent."""
    if not attack.lies:
        return 0
    degrees = network.degrees[list(network.poisoned)]
    return len(degrees) if attack.sends_the_same() else int(degrees.sum())


def _of_group(
    attack: Attack,
    network: Network,
    runs: Sequence[int],
    seeds: Sequence[int],
    messages: Tensor,
    models: Tensor,
    iteration: int,
    members: Sequence[int] | None,
) -> FalseMessages:
    """The false messages of runs with one attack on one network."""
    poisoned = network.poisoned if members is None else members
    links = [(agent, to) for agent in poisoned for to in network.neighbours(agent)]
    senders, receivers = np.array(links, dtype=np.int64).T
    broadcast = attack.sends_the_same()
    by_sender = np.array(poisoned, dtype=np.int64)
    sent_by = by_sender if broadcast else senders
    if members is not None:  # a view in which every agent's row is that of the one that is here
        messages, models = (part.expand(-1, network.agents, -1) for part in (messages, models))
    seen = SeenMessages(
        iteration=iteration,
        network=network,
        knows=attack.knowledge if members is None else "own",
        senders=torch.tensor(sent_by, device=messages.device),
        receivers=None if broadcast else torch.tensor(receivers, device=messages.device),
        messages=messages,
        models=models,
        seeds=seeds,
    )
    values = attack.on_messages(seen)
    expected = (len(runs), len(sent_by), messages.shape[-1])
    if values.shape != expected:
        raise BezoarError(
            f"attack {attack.name}: expected messages of shape {list(expected)}, found "
            f"{list(values.shape)}"
        )
    rows = np.searchsorted(by_sender, senders) if broadcast else np.arange(len(links))
    offsets = np.arange(len(runs))[:, None] * len(sent_by)
    return FalseMessages(
        values.to(messages.dtype).flatten(0, 1),
        np.repeat(runs, len(links)),
        np.tile(senders, len(runs)),
        np.tile(receivers, len(runs)),
        (rows + offsets).ravel(),
    )
