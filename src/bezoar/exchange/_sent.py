"""What is sent in one exchange."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from bezoar._arrays import Ints
from bezoar._errors import BezoarError
from bezoar.networks import Network


@dataclass(frozen=True)
class FalseMessages:
    """Messages that differ from what their senders hold themselves, perhaps by receiver.

    Attributes:
        values: ``[rows, D]`` the messages.
        runs: ``[links]`` in which run each is sent.
        senders: ``[links]`` who sends it.
        receivers: ``[links]`` to which neighbour.
        rows: ``[links]`` which of the messages it is. Links are known on the host.
    """

    values: Tensor
    runs: Ints
    senders: Ints
    receivers: Ints
    rows: Ints

    def __post_init__(self) -> None:
        if len({len(part) for part in (self.runs, self.senders, self.receivers, self.rows)}) != 1:
            raise ValueError("runs, senders, receivers and rows must have one entry a link")

    def check(self, networks: Sequence[Network], length: int) -> None:
        """Refuse messages of another length, or to agents that are not the sender's neighbours.

        Args:
            networks: one network a run.
            length: the length of true messages.
        """
        shape = list(self.values.shape)
        if len(shape) != 2 or shape[1] != length:
            raise BezoarError(f"false messages: expected shape [rows, {length}], found {shape}")
        beyond = self.rows[(self.rows < 0) | (self.rows >= shape[0])]
        if len(beyond):
            raise BezoarError(
                f"false messages: expected rows from 0 to {shape[0] - 1}, found {beyond[0]}"
            )
        for run in np.unique(self.runs).tolist():
            here = self.runs == run
            senders, receivers = self.senders[here], self.receivers[here]
            edges = networks[run].adjacency.tocoo()
            agents = networks[run].agents
            linked = np.isin(senders * agents + receivers, edges.row * agents + edges.col)
            if not linked.all():
                sender, receiver = senders[~linked][0], receivers[~linked][0]
                raise BezoarError(
                    f"false messages: agent {sender} sends to agent {receiver}, which is not its "
                    f"neighbour in run {run}"
                )

    def behind(self, runs: Sequence[int], index: Ints) -> Ints:
        """``[runs, n, slots]`` which of the links each slot's message came by; −1 if by none.

        Args:
            runs: the numbers of the runs.
            index: ``[networks, n, slots]`` the agent behind each slot, the own first.
        """
        agents = index[0, :, 0]
        links = np.flatnonzero(np.isin(self.runs, runs) & np.isin(self.receivers, agents))
        run = (np.array(runs) == self.runs[links, None]).argmax(-1)
        agent = np.searchsorted(agents, self.receivers[links])
        slot = (index[run % len(index), agent] == self.senders[links, None]).argmax(-1)
        found = np.full((len(runs), *index.shape[1:]), -1)
        found[run, agent, slot] = links
        return found

    @classmethod
    def together(cls, several: "list[FalseMessages]") -> "FalseMessages | None":
        """Those of several groups of runs as one; ``None`` for an empty list."""
        if not several:
            return None
        offsets = np.cumsum([0, *(len(each.values) for each in several[:-1])])
        return cls(
            torch.cat([each.values for each in several]),
            np.concatenate([each.runs for each in several]),
            np.concatenate([each.senders for each in several]),
            np.concatenate([each.receivers for each in several]),
            np.concatenate([e.rows + offset for e, offset in zip(several, offsets, strict=True)]),
        )


#: Tells the losses ``[m]`` of models ``[m, D]`` on samples of one agent in one run; it is given the
#: run, the agent, the models and the number of samples.
Judge = Callable[[int, int, Tensor, int], Tensor]


@dataclass(frozen=True)
class UpdateSums:
    """What every input changed in the output layer, summed up over all iterations.

    Attributes:
        runs: which runs keep sums.
        before: ``[kept, links, length]`` the sums so far of these runs; links as :class:`Links` has
            them.
        after: memory like it, into which the sums with this exchange are written.
    """

    runs: Sequence[int]
    before: Tensor
    after: Tensor


@dataclass(frozen=True)
class Sent:
    """What is sent in one exchange.

    Attributes:
        messages: ``[runs, W, D]`` what every agent holds after its local update. Its neighbours
            receive the same, but for the false messages.
        false: what some receive instead, if anyone lies.
        remembered: ``[runs, W, D]`` for every name that some rule remembers, but the origin.
        iteration: which iteration it is, counted from 1; 0 outside training.
        progress: which share of all iterations is done.
        judge: what tells the losses of inputs, for rules that judge by them.
        sums: the sums of updates, for rules that go by them.
        distances: ``[runs, links]`` squared distances of the inputs to the output of an auxiliary
            rule, for rules that have one; links as :class:`Links` has them.
    """

    messages: Tensor
    false: FalseMessages | None = None
    remembered: Mapping[str, Tensor] = field(default_factory=dict)
    iteration: int = 0
    progress: float = 0.0
    judge: Judge | None = None
    sums: UpdateSums | None = None
    distances: Tensor | None = None

    def __post_init__(self) -> None:
        if self.false is not None:  # in memory they are like the messages
            values = self.false.values.to(self.messages).contiguous()
            rows = np.asarray(self.false.rows, dtype=np.int64)
            object.__setattr__(self, "false", replace(self.false, values=values, rows=rows))
        origin = self.messages.new_zeros(()).expand(self.messages.shape)  # takes no memory
        object.__setattr__(self, "remembered", {**self.remembered, "origin": origin})


def as_vectors(name: str, found: ArrayLike | Tensor) -> Tensor:
    """What was given for an argument as a dense floating-point tensor ``[..., D]``.

    Arrays keep their type. Lists become torch's default type.

    Raises:
        BezoarError: with the argument's name, for anything else.
    """
    if isinstance(found, Tensor):
        vectors = found.detach()
    else:
        listed = isinstance(found, list | tuple)
        try:
            array = torch.from_numpy(np.array(found))
        except (TypeError, ValueError, RuntimeError) as error:
            raise BezoarError(
                f"{name}: expected a tensor, an array or lists of numbers, found "
                f"{type(found).__name__}: {error}"
            ) from None
        vectors = array.to(torch.get_default_dtype()) if listed else array
    if vectors.layout != torch.strided or vectors.is_meta:
        kind = "a meta tensor" if vectors.is_meta else str(vectors.layout)
        raise BezoarError(f"{name}: expected a dense tensor, found {kind}")
    shape = list(vectors.shape)
    if not vectors.is_floating_point() or not shape or shape[-1] == 0:
        raise BezoarError(
            f"{name}: expected floating point of shape [..., D] with D from 1, found "
            f"{vectors.dtype} of shape {shape}"
        )
    return vectors
