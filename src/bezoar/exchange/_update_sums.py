"""What every input changed in all iterations, for rules that go by it."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from bezoar.exchange._neighbourhoods import Neighbourhoods
from bezoar.exchange._sent import UpdateSums


def add_updates(
    sums: UpdateSums,
    runs: Sequence[int],
    here: Neighbourhoods,
    layers: Tensor,
    finite: Tensor,
) -> Tensor:
    """Add what the inputs of some agents changed to the sums.

    Args:
        sums: the sums so far, and memory for the new ones.
        runs: the numbers of the runs.
        here: the agents' neighbourhoods.
        layers: ``[runs, n, m + 1, width]`` the output layer of each slot; the last slot is the
            agent's model before the local update.
        finite: ``[runs, n, m + 1]`` whether there is something finite in the slot.

    Returns:
        ``[runs, n, m + 1, m + 1]`` float64 inner products of the new sums; zero in the last slot.
    """
    updates = layers[..., :-1, :] - layers[..., -1:, :]
    known = finite[..., :-1] & finite[..., -1:] & here.mask
    updates = updates.masked_fill_(~known.unsqueeze(-1), 0)
    length, width = sums.before.shape[1], updates.shape[-1]
    links = here.first_link.unsqueeze(-1) + torch.arange(here.slots, device=updates.device)
    # Nothing is added at padding: to the last place, which is nobody's.
    links = torch.where(here.mask, links, length - 1)
    kept = torch.tensor([sums.runs.index(run) for run in runs], device=updates.device)
    places = (links + length * kept[:, None, None]).flatten()
    summed = sums.before.flatten(0, 1)[places, :width].view_as(updates) + updates
    sums.after.flatten(0, 1)[places, :width] = summed.flatten(0, -2).to(sums.after.dtype)
    exact = summed.to(torch.float64)
    return pad(exact @ exact.mT, (0, 1, 0, 1))
