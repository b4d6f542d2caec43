"""Attacks that drive neighbours apart: dissensus and the spectral attack."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from bezoar._arrays import Floats
from bezoar._options import Factor
from bezoar.attacks._attack import Attack, Knowledge, SeenMessages
from bezoar.networks import Network


@dataclass(frozen=True)
class Dissensus(Attack):
    """`Dissensus <https://arxiv.org/abs/2202.01545>`_: undo what the neighbours agree on.

    The receiver ``w`` is sent ``y_w − ε Σ_v E_wv (y_v − y_w) / Σ_p E_wp``, over its regular
    neighbours ``v`` and its poisoned ones ``p``: with ``ε = 1`` the weighted mean stays where it
    was. The mixing matrix is Metropolis'.

    Args:
        scale: the factor ``ε``.
    """

    scale: Factor = 1.0

    name: ClassVar[str] = "dissensus"
    knows: ClassVar[Knowledge] = "everything"

    def on_messages(self, seen: SeenMessages) -> Tensor:
        network, messages = seen.network, seen.all_messages()
        assert seen.receivers is not None
        to = seen.receivers.cpu().numpy()
        mixing = network.mixing("metropolis")[to].toarray()
        mixing[np.arange(len(to)), to] = 0
        poisoned = mixing[:, network.poisoned_mask].sum(1, keepdims=True)
        pull = torch.from_numpy(mixing * ~network.poisoned_mask / poisoned).to(messages)
        received = seen.receivers_messages()
        towards = pull @ messages - pull.sum(1, keepdim=True) * received
        return received - self.scale * towards


@dataclass(frozen=True)
class Spectral(Attack):
    """`The spectral attack <https://arxiv.org/abs/2410.10418>`_: ``y_w + s φ_w Σ_v φ_v y_v``.

    ``φ`` is the Fiedler vector of the regular network, of length one: the direction in which it
    falls into two halves most easily. So each half is drawn away from the other. Where there are
    several such directions, as on a ring, it is one of them, and which may depend on the machine.

    Args:
        scale: the factor ``s``.
    """

    scale: Factor = 1.0

    name: ClassVar[str] = "spectral"
    knows: ClassVar[Knowledge] = "everything"

    def on_messages(self, seen: SeenMessages) -> Tensor:
        messages = seen.all_messages()
        fiedler = torch.from_numpy(_fiedler(seen.network)).to(messages)
        apart = torch.einsum("w,rwd->rd", fiedler, messages).unsqueeze(1)
        assert seen.receivers is not None
        return seen.receivers_messages() + self.scale * fiedler[seen.receivers, None] * apart


@lru_cache(maxsize=64)
def _fiedler(network: Network) -> Floats:
    """``[W]`` the Fiedler vector of the regular network, zero at poisoned agents."""
    regular = list(network.regular)
    links = network.adjacency[regular][:, regular].toarray().astype(np.float64)
    laplacian = np.diag(links.sum(1)) - links
    # What is added moves the constant vector behind all others, however many parts there are.
    _, vectors = np.linalg.eigh(laplacian + 1 + laplacian.trace())
    found = np.zeros(network.agents)
    if len(regular) > 1:
        least = vectors[:, 0]
        found[regular] = least * np.sign(least[np.abs(least).argmax()])
    return found
